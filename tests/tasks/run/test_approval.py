"""A run that asks stops, and continues from the decision as if it had been made at once."""

import shutil

import pytest
from support import asking
from support.kept import history
from support.sessions import opened

from coevo.configs.load.load import load_recipe
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.run.approval import Vote, decide
from coevo.tasks.run.limit import Limit
from coevo.utilities.errors import CoevoError


def said(root, approved, revision=None, by="ada"):
    """Decide; the revision that this makes."""
    workspace = Workspace(root)
    paths = workspace.existing("run")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        lineage.recover(bank)
        return decide(Vote(approved, by), revision, paths, bank, lineage)


def entries(root):
    return Bank(Workspace(root).existing("run").bank).entries()


def strategies(root):
    return sorted(entry.strategy for entry in entries(root) if entry.active)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Stops at revision 1 with candidates that replay lets in. Nothing may change it."""
    root = tmp_path_factory.mktemp("asked")
    (metrics,) = asking.play(root)
    assert metrics["bank/proposed"] > 0
    return root


@pytest.fixture
def copied(asked, tmp_path):
    return shutil.copytree(asked, tmp_path / "copy")


def test_what_is_asked_for_is_committed_and_the_bank_stays(asked):
    head = history(asked, "run")[-1]
    assert (head.revision, head.iteration, head.state["waiting"], entries(asked)) == (1, 1, True, [])
    assert head.state["metrics"]["bank/size"] == 0
    assert "bank/replay/difference" in head.state["metrics"]


def test_a_run_that_waits_begins_no_revision(asked):
    with opened(asked, asking.config()) as session:
        limit = Limit()
        assert not limit.allows(session)
        assert limit.reason == "revision 1 waits for approval"


def test_yes_is_a_revision_with_what_would_have_entered_at_once(copied, tmp_path):
    made = said(copied, True)
    plain = tmp_path / "plain"
    asking.play(plain, settings=asking.config("approval.admission=none"))
    assert (made.revision, made.iteration, made.parent, made.restored_from) == (2, 1, 1, None)
    assert strategies(copied) == strategies(plain) != []
    assert {(entry.created, entry.edited) for entry in entries(copied)} == {(2, 2)}
    before = history(copied, "run")[1]
    assert made.state["approval"] == {"revision": 1, "proposal": before.artifacts["proposal"], "approved": True}
    assert made.artifacts["policy"] == before.artifacts["policy"]
    counted = history(plain, "run")[-1].state["metrics"]
    assert {name: made.state["metrics"][name] for name in ("bank/admitted", "bank/rejected", "bank/size")} == {
        name: counted[name] for name in ("bank/admitted", "bank/rejected", "bank/size")
    }


def test_no_admits_nothing_and_keeps_what_was_judged(copied):
    made = said(copied, False)
    assert (made.state["approval"]["approved"], entries(copied)) == (False, [])
    judged = Bank(Workspace(copied).existing("run").bank).judged()
    assert {each.verdict.admitted for each in judged} == {False}
    assert made.state["metrics"]["bank/rejected"] == history(copied, "run")[1].state["metrics"]["bank/proposed"]


@pytest.mark.parametrize("approved", [True, False])
def test_the_run_goes_on_from_a_decision_and_the_writer_sees_no_episode_twice(asked, copied, tmp_path, approved):
    said(copied, approved)
    with opened(copied, asking.config()) as session:
        assert (session.recent, session.fired, session.waiting) == ([], 1, False)
    asking.play(copied)
    # Another run with the same decision at once has the same states, bit for bit.
    other = shutil.copytree(asked, tmp_path / "other")
    said(other, approved)
    asking.play(other)
    assert [manifest.state for manifest in history(other, "run")] == [
        manifest.state for manifest in history(copied, "run")
    ]


def test_a_decision_about_an_ended_trial_takes_no_episode_from_the_writer(tmp_path):
    trial = "bank.admission={type: within-group, iterations: 1, delta: -1.0}"
    others = (each for each in asking.SMALL if not each.startswith("bank.admission="))
    settings = load_recipe("homerules-experience-only", [*others, "bank.every=2", trial])
    asking.play(tmp_path, 3, settings)
    made = said(tmp_path, True)
    assert (made.revision, made.state["fired"]) == (4, 2)
    with opened(tmp_path, settings) as session:
        assert {episode.revision for episode in session.recent} == {3}
        assert session.bank.entries


def test_a_decision_is_about_what_was_looked_at(copied):
    with pytest.raises(CoevoError, match="run@0 is not pending, run@1 is"):
        said(copied, True, revision=0)
    said(copied, True, revision=1)
    with pytest.raises(CoevoError, match="run 'run' has nothing to approve"):
        said(copied, True)


def test_a_rollback_to_the_question_asks_again(copied):
    said(copied, True)
    workspace = Workspace(copied)
    paths = workspace.existing("run")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        lineage.rollback(1, Bank(paths.bank))
    assert history(copied, "run")[-1].state["waiting"]
    assert entries(copied) == []
    made = said(copied, False)
    assert (made.revision, made.state["approval"]["revision"], entries(copied)) == (4, 3, [])
