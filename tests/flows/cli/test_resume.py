"""A new length is checked before it is written down, and so is whether the run can go on at all."""

import pytest
from support import small_run

from coevo.configs.load.load import load_recipe
from coevo.flows import api
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize(
    ("settings", "iterations", "says"),
    [
        (["bank=null", "update=null", "iterations=0"], 5, "leave nothing to learn"),
        (["schedule={type: policy-then-bank, switch_at: 2}"], 1, "none of iterations=1"),
    ],
)
def test_a_length_that_the_run_cannot_have_is_refused_and_the_run_stays_as_it_is(
    refused, tmp_path, settings, iterations, says
):
    paths = small_run.build(tmp_path, "mine", settings)
    before = paths.config.read_bytes()
    result = refused("resume", "mine", "--iterations", iterations, "--workspace", tmp_path)
    assert result.startswith("coevo: mine: ")
    assert says in result
    assert paths.config.read_bytes() == before


def test_a_run_that_cannot_go_on_keeps_its_length(refused, tmp_path):
    paths = small_run.build(tmp_path, "mine")
    before = paths.config.read_bytes()
    result = refused("resume", "mine", "--iterations", 10**9, "--workspace", tmp_path)
    assert "run 'mine' has changed since its last revision: code: " in result
    with pytest.raises(CoevoError, match="has changed since its last revision"):
        api.resume("mine", 10**9, workspace=tmp_path)
    assert paths.config.read_bytes() == before


def test_one_in_use_is_refused_before_prefect_hears_of_it(coevo, tmp_path, monkeypatch):
    paths = small_run.build(tmp_path, "mine", ["iterations=9"])
    monkeypatch.setattr("coevo.flows.start_run.use_prefect", lambda root: pytest.fail("Prefect was asked"))
    with writer_lock(paths):
        result = coevo("resume", "mine", "--accept-change", "--workspace", tmp_path)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "run 'mine' is in use by process" in result.err


def test_one_that_does_not_fit_is_answered_by_a_branch_of_its_last_revision(refused, tmp_path):
    small_run.build(tmp_path, "mine", ["policy.max_positions=243"])
    result = refused("resume", "mine", "--workspace", tmp_path)
    last = len(small_run.CHANGES) - 1
    assert "the policy attends to 243: lower context.experience_tokens" in result
    assert f": run `coevo branch mine@{last} NEW KEY=VALUE --workspace {tmp_path}`" in result
    Workspace(tmp_path).create("new", load_recipe(small_run.RECIPE, ["policy.max_positions=243"]))
    assert "which shortens observations: start a new run with KEY=VALUE" in refused(
        "resume", "new", "--workspace", tmp_path
    )


def test_one_that_has_reached_its_new_length_keeps_that(coevo, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    paths = small_run.build(tmp_path, "mine")
    result = coevo("resume", "mine", "--iterations", 3, "--workspace", tmp_path)
    assert result.code == 0
    assert "mine has done all of its 3 iterations" in result.out
    assert result.out.endswith(f"; for more: coevo resume mine --iterations 6 --workspace {tmp_path}\n")
    assert paths.read_config().iterations == 3


def test_fewer_iterations_than_it_has_done_are_refused(coevo, tmp_path):
    paths = small_run.build(tmp_path, "mine")
    before = paths.read_config()
    result = coevo("resume", "mine", "--iterations", 2, "--workspace", tmp_path)
    assert (result.code, result.err) == (2, "coevo: mine has done 3 iterations: set --iterations to more\n")
    assert paths.read_config() == before


def test_a_change_by_a_command_to_a_run_that_is_done_names_more_iterations(coevo, tmp_path, monkeypatch, tracking_uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    small_run.build(tmp_path, "mine", ["iterations=3"])
    directory = ("--workspace", tmp_path)
    coevo("bank", "export", "mine", tmp_path / "bank.jsonl", *directory)
    for command, iterations in (
        (("rollback", "mine", "--to", 2), ""),
        (("rollback", "mine", "--to", 3), " --iterations 6"),
        (("bank", "retire", "mine", small_run.EDITED.id, "--reason", "wrong"), " --iterations 6"),
        (("bank", "import", "mine", tmp_path / "bank.jsonl"), " --iterations 6"),
    ):
        done = coevo(*command, *directory)
        assert f"Continue with: coevo resume mine{iterations} --workspace {tmp_path}" in done.out, done.err
