"""A branch begins with all of a revision and goes its own way; the run that it comes from does not notice."""

import json

import pytest
from mlflow import MlflowClient
from support.kept import recovered, retained, whole

from coevo.flows.upkeep.branch import _check_fixed
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.revision.code_version import code_revision
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.tasks.run.changes import check_unchanged
from coevo.utilities.errors import CoevoError


def log(coevo, run):
    return json.loads(coevo("log", run, "--json").out)


def history(root, run):
    with Lineage.open(Workspace(root).existing(run).lineage, root / "cache") as lineage:
        return lineage.history.log(), lineage.history.commits()


def files(root):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*") if path.is_file()}


def test_it_begins_with_all_of_the_revision_byte_for_byte(coevo, copied):
    before = files(copied / "runs/first")
    result = coevo("branch", "first@2", "mine", "seed=4", "update.optimizer.lr=0.001", "iterations=9")
    assert result.code == 0, result.err
    assert "Created mine@3 from first@2: seed: 0 -> 4; update.optimizer.lr:" in result.out
    assert f" --workspace {copied}" in result.out.partition("Continue with: coevo resume mine")[2]
    assert whole(copied, "mine", 3) == whole(copied, "mine", 2) == whole(copied, "first", 2)
    assert whole(copied, "mine", 1) == whole(copied, "first", 1)
    assert files(copied / "runs/first") == before


def test_its_first_revision_records_where_it_comes_from_and_what_changed(coevo, copied):
    coevo("branch", "first@2", "mine", "seed=4", "iterations=9")
    (mine, commits), (first, originals) = history(copied, "mine"), history(copied, "first")
    assert mine[:3] == first[:3]
    assert commits[:3] == originals[:3]
    made = mine[3]
    assert made.observed["branched_from"] == {"run": "first", "revision": 2}
    assert made.observed["run"] == "mine"
    assert (made.parent, made.restored_from, made.state["accepted_change"]) == (2, 2, ["seed: 0 -> 4"])
    config = Workspace(copied).existing("mine").read_config()
    assert (config.seed, config.iterations) == (4, 9)
    assert made.state["config"] == config.model_dump(mode="json")
    assert made.state["config_hash"] == config.digest()
    assert log(coevo, "mine")[3]["what"] == "branched from first@2, changed seed: 0 -> 4"


def test_a_session_takes_it_for_one_of_its_own_runs(coevo, copied):
    coevo("branch", "first@2", "mine", "seed=4")
    paths = Workspace(copied).existing("mine")
    with Lineage.open(paths.lineage, copied / "cache") as lineage:
        assert not lineage.recover(Bank(paths.bank))
        head = lineage.history.head()
        found = check_unchanged(paths.read_config(), head, "mine", accept=True)
    assert found == [f"code: {'c' * 12} -> {code_revision()[:12]}"]


@pytest.mark.full
def test_the_two_go_their_own_ways(coevo, copied):
    coevo("branch", "first@2", "mine")
    expected = whole(copied, "mine", 3)
    coevo("rollback", "first", "--to", 0)
    Bank(Workspace(copied).existing("first").bank).merge(BankChange())
    assert whole(copied, "mine", 3) == expected
    coevo("rollback", "mine", "--to", 1)
    assert recovered(copied, "mine").observed.get("branched_from") is None
    assert whole(copied, "mine", 4) == whole(copied, "first", 1)
    assert [row["revision"] for row in log(coevo, "first")] == [0, 1, 2, 3, 4]


def test_it_keeps_what_the_other_run_drops(coevo, copied):
    coevo("branch", "first@2", "mine")
    expected = [whole(copied, "mine", revision) for revision in range(4)]
    coevo("gc", "first", "other", "bankless", "--keep-last", 1, "--apply")
    assert retained(copied, "first") == [0, 3]
    assert [whole(copied, "mine", revision) for revision in range(4)] == expected


def test_of_a_run_that_dropped_revisions_it_has_the_others(coevo, copied):
    coevo("tag", "first@2", "best")
    coevo("gc", "--keep-last", 1, "--apply")
    assert coevo("branch", "first@2", "mine").code == 0
    assert retained(copied, "mine") == [0, 2, 3]
    assert whole(copied, "mine", 3) == whole(copied, "first", 2)
    assert log(coevo, "mine")[2]["tags"] == []


def test_a_branch_can_be_branched(coevo, copied):
    coevo("branch", "first@2", "mine", "seed=4")
    assert coevo("branch", "mine", "yours", "seed=5").code == 0
    assert whole(copied, "yours", 4) == whole(copied, "first", 2)


def test_a_run_in_use_can_be_branched(coevo, copied):
    with writer_lock(Workspace(copied).existing("first")):
        assert coevo("branch", "first", "mine").code == 0
    assert whole(copied, "mine", 4) == whole(copied, "first", 3)


def test_a_bank_that_begins_with_the_branch_waits_for_no_earlier_episodes(coevo, copied):
    assert coevo("branch", "bankless@2", "mine", "bank.every=1").code == 0
    assert recovered(copied, "mine").state["fired"] == 3


@pytest.mark.full
def test_it_is_published_as_a_run_of_its_own_from_revision_0(coevo, copied, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    coevo("tag", "first@2", "best")
    coevo("gc", "--keep-last", 1, "--apply")
    coevo("branch", "first@2", "mine")
    coevo("rollback", "mine", "--to", 2)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (experiment,) = (found.experiment_id for found in client.search_experiments() if found.name == "homerules")
    (run,) = client.search_runs([experiment], "tags.`coevo.run` = 'mine'")
    points = {point.step: point.timestamp for point in client.get_metric_history(run.info.run_id, "cost/seconds/wall")}
    assert points == {0: 0, 1: 60_000, 2: 120_000}
    assert {item.path for item in client.list_artifacts(run.info.run_id, "bank")} == {"bank/r0.json", "bank/r2.json"}


def test_a_model_that_has_moved_is_linked_to_its_place():
    with pytest.raises(
        CoevoError, match=r"policy.path: a branch cannot change it: .* link it to that place with `ln -s`"
    ):
        _check_fixed({"policy.path": "/models/a"}, {"policy.path": "/models/b"})


def test_a_branch_of_a_policy_behind_an_endpoint_changes_what_decides_no_answer():
    _check_fixed({"policy.budget.tokens": 1, "policy.timeout": 1.0}, {"policy.budget.tokens": 2, "policy.retries": 1})
    for setting in ("policy.url", "policy.model", "policy.extra", "policy.reuse"):
        with pytest.raises(CoevoError, match="start a new run instead"):
            _check_fixed({setting: "a"}, {setting: "b"})
