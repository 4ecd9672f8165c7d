"""gc, branch and rollback killed with SIGKILL anywhere: the next command brings the run to the right end."""

import shutil
import signal

import pytest
from support import small_run
from support.kept import recovered, retained, whole
from support.runs import coevo
from support.soak import mostly_soak

from coevo.flows.cli.app import main
from coevo.lineage.lineage import Lineage
from coevo.lineage.objects.cache import Cache
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.table_retention import surplus

pytestmark = pytest.mark.full
RUNS = ("first", "other")
GC = ("gc", "--keep-last", "1", "--apply")
GC_KILLS = (
    "coevo.memory.bank.table_retention:_prove@1",
    "coevo.lineage.revision.tags:Tags.drop@1",
    "coevo.lineage.revision.tags:Tags.drop@1+",
    "coevo.flows.upkeep.gc:_remove@1",
    "pathlib:Path.unlink@12",
    "coevo.lineage.objects.cache:Cache.remove@1",
    "pathlib:Path.unlink@18+",
)
BRANCH = ("branch", "first@2", "mine", "seed=4")
BRANCH_KILLS = (
    "coevo.memory.bank.table_retention:_link@2",
    "coevo.memory.bank.table_retention:copy@1+",
    "coevo.lineage.revision.tags:Tags.copy_from@1",
    "coevo.lineage.lineage:Lineage.branch@1+",
    "coevo.lineage.lineage:write_manifest@1+",
    "pathlib:Path.rename@2",
)
ROLLBACK = ("rollback", "first", "--to", "1")
ROLLBACK_KILLS = {
    "coevo.memory.bank.bank:Bank.restore@1+": 3,
    "coevo.lineage.repository:Repository.check_out@1+": 3,
    "coevo.lineage.lineage:write_manifest@1+": 3,
    "coevo.lineage.repository:Repository.commit@1+": 4,
}
"""Points of a rollback, and the revision that is the last one after the next command."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    for run in RUNS:
        small_run.build(root, run, ["seed=4"] if run == "other" else [])
        # Published, so that no test waits for MLflow, but for what it commits itself.
        Cursor(root / "runs" / run / "published.json").advance(3)
    return root


@pytest.fixture
def directory(made, tmp_path):
    return shutil.copytree(made, tmp_path / "place")


def killed(directory, command, kill):
    done = coevo(*command, workspace=directory, kill=kill)
    assert done.returncode == -signal.SIGKILL, f"{kill}: not reached\n{done.stdout}{done.stderr}"


def done(directory, command):
    """Run a command to its end, in this process."""
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--workspace", str(directory)])
    assert stopped.value.code == 0


def names(directory, run):
    with Lineage.open(directory / "runs" / run / "lineage", directory / "cache") as lineage:
        kept = [lineage.history.manifest(revision) for revision in lineage.history.retained()]
    return {name: {m.versions[name]: m.tables[name] for m in kept} for name in kept[0].tables}


@pytest.fixture(scope="module")
def collected(made, tmp_path_factory):
    """Objects that an undisturbed gc leaves."""
    directory = shutil.copytree(made, tmp_path_factory.mktemp("collected") / "place")
    done(directory, GC)
    return Cache(directory / "cache").objects().keys()


@pytest.mark.parametrize("kill", mostly_soak(GC_KILLS, GC_KILLS[0], GC_KILLS[4]))
def test_a_killed_gc_is_completed_by_the_next(made, directory, collected, kill):
    killed(directory, GC, kill)
    for run in RUNS:
        assert recovered(directory, run).revision == 3
        for revision in retained(directory, run):
            assert whole(directory, run, revision) == whole(made, run, revision)
    done(directory, GC)
    assert [retained(directory, run) for run in RUNS] == [[0, 3]] * 2
    assert Cache(directory / "cache").objects().keys() == collected
    assert [surplus(directory / "runs" / run / "bank", names(directory, run)) for run in RUNS] == [[], []]
    for run in RUNS:
        assert not list((directory / "runs" / run / "scratch").glob("*"))
        for revision in (0, 3):
            assert whole(directory, run, revision) == whole(made, run, revision)


@pytest.mark.parametrize("kill", mostly_soak(BRANCH_KILLS, BRANCH_KILLS[1], BRANCH_KILLS[5]))
def test_a_killed_branch_leaves_no_run_and_can_be_repeated(made, directory, kill):
    killed(directory, BRANCH, kill)
    assert [run.name for run in Workspace(directory).runs()] == list(RUNS)
    assert whole(directory, "first", 2) == whole(made, "first", 2)
    done(directory, BRANCH)
    done(directory, ("gc", "--apply"))
    assert sorted(path.name for path in (directory / "runs").iterdir()) == ["first", "mine", "other"]
    assert recovered(directory, "mine").revision == 3
    assert whole(directory, "mine", 3) == whole(made, "first", 2)


def test_a_branch_that_was_killed_after_its_rename_is_whole(made, directory):
    killed(directory, BRANCH, "pathlib:Path.rename@2+")
    assert recovered(directory, "mine").observed["branched_from"] == {"run": "first", "revision": 2}
    assert whole(directory, "mine", 3) == whole(made, "first", 2)


@pytest.mark.parametrize("kill", mostly_soak([*ROLLBACK_KILLS], *[*ROLLBACK_KILLS][::3]))
def test_a_killed_rollback_happened_or_did_not(made, directory, kill):
    head = ROLLBACK_KILLS[kill]
    killed(directory, ROLLBACK, kill)
    assert recovered(directory, "first").revision == head
    assert whole(directory, "first", head) == whole(made, "first", 3 if head == 3 else 1)
    done(directory, ("rollback", "first", "--to", "3"))
    assert recovered(directory, "first").revision == head + 1
    assert whole(directory, "first", head + 1) == whole(made, "first", 3)
