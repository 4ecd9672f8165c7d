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
    "coevo.lineage.repository:Repository.seal@1+": 4,
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
def place(made, tmp_path):
    return shutil.copytree(made, tmp_path / "place")


def killed(place, command, kill):
    done = coevo(*command, workspace=place, kill=kill)
    assert done.returncode == -signal.SIGKILL, f"{kill}: not reached\n{done.stdout}{done.stderr}"


def done(place, command):
    """Run a command to its end, in this process."""
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--workspace", str(place)])
    assert stopped.value.code == 0


def names(place, run):
    with Lineage.open(place / "runs" / run / "lineage", place / "cache") as lineage:
        kept = [lineage.history.manifest(revision) for revision in lineage.history.retained()]
    return {name: {m.versions[name]: m.tables[name] for m in kept} for name in kept[0].tables}


@pytest.fixture(scope="module")
def collected(made, tmp_path_factory):
    """Objects that an undisturbed gc leaves."""
    place = shutil.copytree(made, tmp_path_factory.mktemp("collected") / "place")
    done(place, GC)
    return Cache(place / "cache").objects().keys()


@pytest.mark.parametrize("kill", mostly_soak(GC_KILLS, GC_KILLS[0], GC_KILLS[4]))
def test_a_killed_gc_is_completed_by_the_next(made, place, collected, kill):
    killed(place, GC, kill)
    for run in RUNS:
        assert recovered(place, run).revision == 3
        for revision in retained(place, run):
            assert whole(place, run, revision) == whole(made, run, revision)
    done(place, GC)
    assert [retained(place, run) for run in RUNS] == [[0, 3]] * 2
    assert Cache(place / "cache").objects().keys() == collected
    assert [surplus(place / "runs" / run / "bank", names(place, run)) for run in RUNS] == [[], []]
    for run in RUNS:
        assert not list((place / "runs" / run / "scratch").glob("*"))
        for revision in (0, 3):
            assert whole(place, run, revision) == whole(made, run, revision)


@pytest.mark.parametrize("kill", mostly_soak(BRANCH_KILLS, BRANCH_KILLS[1], BRANCH_KILLS[5]))
def test_a_killed_branch_leaves_no_run_and_can_be_repeated(made, place, kill):
    killed(place, BRANCH, kill)
    assert [run.name for run in Workspace(place).runs()] == list(RUNS)
    assert whole(place, "first", 2) == whole(made, "first", 2)
    done(place, BRANCH)
    done(place, ("gc", "--apply"))
    assert sorted(path.name for path in (place / "runs").iterdir()) == ["first", "mine", "other"]
    assert recovered(place, "mine").revision == 3
    assert whole(place, "mine", 3) == whole(made, "first", 2)


def test_a_branch_that_was_killed_after_its_rename_is_whole(made, place):
    killed(place, BRANCH, "pathlib:Path.rename@2+")
    assert recovered(place, "mine").observed["branched_from"] == {"run": "first", "revision": 2}
    assert whole(place, "mine", 3) == whole(made, "first", 2)


@pytest.mark.parametrize("kill", mostly_soak([*ROLLBACK_KILLS], *[*ROLLBACK_KILLS][::3]))
def test_a_killed_rollback_happened_or_did_not(made, place, kill):
    head = ROLLBACK_KILLS[kill]
    killed(place, ROLLBACK, kill)
    assert recovered(place, "first").revision == head
    assert whole(place, "first", head) == whole(made, "first", 3 if head == 3 else 1)
    done(place, ("rollback", "first", "--to", "3"))
    assert recovered(place, "first").revision == head + 1
    assert whole(place, "first", head + 1) == whole(made, "first", 3)
