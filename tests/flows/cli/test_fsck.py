"""``coevo fsck`` names each kind of damage, exactly, and mends what can be mended; beside that it changes nothing."""

import json
import shutil
import subprocess
import sys

import pytest
from support import damaged_history as history
from support import damaged_stores as stores
from support import small_run
from support.damaged import Damaged, points
from support.fsck import fingerprint, fsck

from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.status import RunStatus
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.publish.catchup import entries_at
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.reporter import Silent


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Run ``first``, published up to revision 2 of 3, and ``other``, never published. Nothing may change it."""
    root = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        publish(small_run.build(root), Workspace(root), 3)
    small_run.build(root, "other", ["seed=4"], panel="q" * 64)
    return root


def publish(paths, workspace, revisions):
    origin = paths.created.read_text().strip()
    tracker = Tracker(tracking_store(workspace.root), "homerules", paths.name, origin)
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for manifest in lineage.history.log()[:revisions]:
            commit = lineage.history.commit_hash(manifest.revision)
            tracker.publish(Publication(manifest, commit, entries_at(bank, manifest, Silent())))
    paths.published.write_text(json.dumps({"published": revisions - 1}))
    tracker.finish(RunStatus("finished"), 1.0)


@pytest.fixture
def damaged(whole, tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    shutil.copytree(whole, tmp_path / "copy")
    return Damaged(tmp_path / "copy")


def name(value):
    """Names of the damage, for pytest."""
    return "-".join(harm.__name__ for harm, *_ in value)


@pytest.mark.parametrize("together", [*history.TOGETHER, *stores.TOGETHER], ids=name)
def test_damage_is_named_exactly_and_mended_where_that_can_be(damaged, coevo, together):
    findings = harmed(damaged, [harm for harm, *_ in together])
    assert len(findings) == len(together), findings
    told = [tell(findings, *expected) for _, *expected in together]
    assert len(set(map(id, told))) == len(together)
    repaired(damaged, coevo, findings)


def tell(findings, subject, problem, mended):
    """The finding with these words."""
    alike = [one for one in findings if (one.subject, one.mendable) == (subject, mended) and problem in one.problem]
    assert len(alike) == 1, (problem, findings)
    return alike[0]


@pytest.mark.parametrize(
    ("harm", "problem", "mended"),
    [*history.IN_SEVERAL, *stores.IN_SEVERAL],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damage_that_shows_in_several_places(damaged, coevo, harm, problem, mended):
    (finding,) = (finding for finding in harmed(damaged, [harm]) if problem in finding.problem)
    assert finding.mendable == mended
    found = repair(damaged, coevo)
    left = [row["problem"] for row in found["findings"]]
    assert (finding.problem in [row["problem"] for row in found["mended"]]) == mended
    assert left == [] if mended else finding.problem in left


def harmed(damaged, harms):
    """Findings after it; those of ``other`` are the same, where it needs the same object of the cache."""
    if not set(harms).intersection(stores.IN_TWO_RUNS):
        shutil.rmtree(damaged.root / "runs" / "other")
    for harm in harms:
        harm(damaged)
    before = fingerprint(damaged.root)
    findings = [finding for finding in fsck(damaged.root) if not finding.subject.startswith("other")]
    assert fingerprint(damaged.root) == before
    return findings


def repaired(damaged, coevo, findings):
    """Repair what can be, and nothing else."""
    found = repair(damaged, coevo)
    for kind, mendable in (("mended", True), ("findings", False)):
        ours = [row["problem"] for row in found[kind] if not row["subject"].startswith("other")]
        assert sorted(ours) == sorted(finding.problem for finding in findings if finding.mendable == mendable)


def repair(damaged, coevo):
    result = coevo("fsck", "--repair", "--json", "--workspace", damaged.root)
    found = json.loads(result.out)
    assert result.code == int(found["findings"] != [])
    return found


def test_a_run_that_is_whole_has_no_finding_and_nothing_is_written(whole, coevo):
    before = fingerprint(whole)
    result = coevo("fsck", "--json", "--workspace", whole)
    assert result.code == 0
    assert json.loads(result.out) == {
        "runs": [{"run": name, "revisions": 4, "in_use": False} for name in ("first", "other")],
        "findings": [],
        "mended": [],
    }
    assert fingerprint(whole) == before


def test_a_run_in_use_is_checked_as_far_as_that_is_safe_and_not_repaired(damaged, coevo):
    history.index_lock(damaged)
    history.staged(damaged)
    stores.old_policy_missing(damaged)
    stores.cursor_ahead(damaged)
    (damaged.root / "runs/other/lineage/policy").rename(damaged.root / "moved away")
    with writer_lock(damaged.run):
        before = fingerprint(damaged.run.root)
        result = coevo("fsck", "first", "--repair", "--json", "--workspace", damaged.root)
        assert fingerprint(damaged.run.root) == before
    found = json.loads(result.out)
    assert result.code == 1
    assert found["runs"] == [{"run": "first", "revisions": 4, "in_use": True}]
    assert [row["subject"] for row in found["findings"]] == ["first@1"]


def test_a_dropped_revision_needs_no_artifacts_and_no_bank(damaged):
    stores.old_policy_missing(damaged)
    damaged.git("update-ref", "refs/dropped/r1", "r1")
    damaged.git("tag", "--delete", "r1")
    assert fsck(damaged.root, "first") == []


def test_a_server_that_is_not_there_is_one_finding(damaged, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    (finding,) = fsck(damaged.root)
    assert (finding.subject, finding.mendable) == ("first", False)
    assert "published data was not checked: MLflow at http://127.0.0.1:9 cannot be read" in finding.problem


def test_what_is_published_again_repeats_nothing(damaged, coevo):
    mlflow, run = points(damaged)
    stores.commit_tag(damaged)
    before = mlflow.get_metric_history(run, "agent/success/train")
    assert coevo("fsck", "--repair", "--workspace", damaged.root).code == 0
    assert [vars(point) for point in mlflow.get_metric_history(run, "agent/success/train")] == [
        vars(one) for one in before
    ]


def test_a_run_without_a_revision_and_one_killed_before_its_first(damaged):
    config = damaged.run.read_config()
    damaged.workspace.create("new", config)
    young = damaged.workspace.create("young", config)
    with Lineage.open(young.lineage, damaged.workspace.cache):
        (young.lineage / "manifest.json").write_text("{}")
    (finding,) = fsck(damaged.root)
    assert (finding.subject, finding.mendable) == ("young", True)
    assert finding.problem == "lineage/manifest.json belongs to no revision"


def test_people_get_a_table(damaged, coevo):
    history.tag_missing(damaged)
    stores.old_policy_missing(damaged)
    (damaged.root / "runs/other").rename(damaged.root / "away")
    result = coevo("fsck", "first", "--repair", "--workspace", damaged.root)
    assert result.code == 1
    assert "first: 4 revisions, 1 finding\n" in result.out
    assert result.out.index("Repaired:") < result.out.index("r1 is missing") < result.out.index("Found:")
    assert "coevo pull" in result.out


def test_a_name_without_a_run_is_one_line(damaged, refused):
    assert "No run 'nope'" in refused("fsck", "nope", "--workspace", damaged.root)


@pytest.mark.full
@pytest.mark.parametrize(
    "command",
    [("status",), ("diff", "r0", "r1"), ("list", "."), ("data", "status"), ("dag",), ("exp", "show"), ("checkout",),
     ("metrics", "show"), ("doctor",)],
    ids=" ".join,
)  # fmt: skip
def test_commands_of_dvc_in_a_lineage_leave_nothing_that_fsck_finds(whole, tmp_path, command):
    root = shutil.copytree(whole, tmp_path / "copy")
    program = (sys.executable, "-m", "dvc")
    subprocess.run([*program, *command], cwd=root / "runs/first/lineage", capture_output=True, check=True)
    assert fsck(root, "first") == fsck(whole, "first")
