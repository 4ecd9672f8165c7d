"""Target, summary and guard of a scheduled session."""

import logging

import pytest
from support import asking, small_run

from coevo.flows.sessions.scheduled_session import Account, Log, artifact_key, goal_of, guard, history_of, play
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace


@pytest.fixture(scope="module")
def fallen(tmp_path_factory):
    """A run that went from 1 to 0.5 on its panel between revisions 0 and 3. The last test of it makes a revision."""
    root = tmp_path_factory.mktemp("fallen")
    paths = small_run.build(root, outcomes=("1111", None, None, "1100"))
    return Workspace(root), Account("first", history_of(Workspace(root), paths), start=1)


@pytest.mark.parametrize(
    ("done", "goal", "iterations", "then"),
    [
        (0, 40, 20, 40),  # a new run goes towards its end
        (20, 40, 20, 40),
        (40, 40, 20, 60),  # one that has reached it continues
        (47, 60, 20, 60),  # a killed night is made up for
        (41, 40, 5, 46),
    ],
)
def test_an_interrupted_session_is_made_up_for_before_the_run_grows(done, goal, iterations, then):
    assert goal_of(done, goal, iterations) == then


def test_an_account_compares_what_was_measured_before_with_what_the_session_measured(fallen):
    _, account = fallen
    assert [(panel.name, panel.start, panel.end) for panel in account.panels()] == [("seen-houses", 1.0, 0.5)]
    assert (account.iterations, account.subject()) == (2, "coevo: first played 2 iterations")
    assert "revision 1 to 3" in account.body()
    assert "| seen-houses | 1.000 | 0.500 |" in account.body()


def test_a_session_without_an_evaluation_has_nothing_to_compare(fallen):
    directory, account = fallen
    quiet = Account("first", account.history[:3], start=1)
    assert "| seen-houses | 1.000 | not played |" in quiet.body()
    assert guard(directory, quiet, 0.0) is quiet


@pytest.mark.full
def test_only_a_fall_by_more_than_is_allowed_undoes_the_session_as_a_new_revision(fallen, monkeypatch):
    workspace, account = fallen
    for most in (None, 0.5, 0.7):
        assert guard(workspace, account, most) is account
    assert len(history_of(workspace, workspace.existing("first"))) == 4
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{workspace.root / 'mlflow.db'}")
    Cursor(workspace.existing("first").published).advance(3)
    undone = guard(workspace, account, 0.4)
    history = history_of(workspace, workspace.existing("first"))
    assert (len(history), history[-1].restored_from, history[-1].iteration) == (5, 1, 1)
    assert undone.subject() == "coevo: first was rolled back to revision 1"
    assert (
        "seen-houses fell from 1.000 to 0.500, by more than 0.4: Rolled back to revision 1; recorded as first@4"
        in undone.body()
    )


@pytest.mark.full
def test_a_session_of_a_run_that_waits_plays_nothing_and_says_so(tmp_path):
    asking.play(tmp_path)
    workspace = Workspace(tmp_path)
    paths = workspace.existing("run")
    account = play(workspace, paths, Log(logging.getLogger()), 5, None)
    assert (account.iterations, account.subject()) == (0, "coevo: run waits for approval")
    assert "`coevo approve run@1` or `coevo approve run@1 --reject`" in account.body()
    assert len(history_of(workspace, paths)) == 2
    assert paths.read_config().iterations == 3


@pytest.mark.parametrize(("run", "key"), [("first", "session-first"), ("My_run.2", "session-my-run-2")])
def test_artifact_keys_are_what_prefect_takes(run, key):
    assert artifact_key(run) == key
