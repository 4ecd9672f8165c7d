"""A revision is committed beside what follows, and is there whatever that comes to."""

import shutil
from contextlib import closing
from threading import Event

import pytest
from support.killed import killed
from support.lineage_driver import Shelf, lineage_in, play, run_in
from support.listener import Listener
from support.sessions import opened

from coevo.configs import sections
from coevo.configs.load.load import load_recipe
from coevo.lineage.lock import cache_lock, runs_lock
from coevo.lineage.objects.cache import Cache
from coevo.lineage.workspace import Workspace
from coevo.tasks import commit as module
from coevo.tasks.commit import Committer, remove_superseded
from coevo.tasks.publish.reporter import reporting_to
from coevo.utilities.errors import CoevoError

CONFIG = load_recipe("homerules-coevo-rl", ["warmstart=null", "rollout.tasks=2", "rollout.group_size=2"])


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path, CONFIG) as session:
        yield session


@pytest.fixture
def published(monkeypatch):
    """Revisions that were handed on."""
    seen = []
    monkeypatch.setattr(module, "publish", lambda stores, frozen, manifest: seen.append(manifest.revision))
    return seen


def test_the_next_revision_begins_before_the_last_is_committed(session, published, monkeypatch):
    go, commit = Event(), module.commit
    monkeypatch.setattr(module, "commit", lambda *arguments: go.wait(60) and commit(*arguments))
    with closing(Committer(session)) as keeping:
        session.pending.metrics["agent/success/train"] = 0.25
        keeping.begin()
        assert (session.pending.revision, session.pending.metrics, published) == (2, {}, [])
        session.pending.metrics["agent/success/train"] = 0.5
        session.bank.entries, session.iteration = [], 7
        go.set()
        keeping.wait()
        assert published == [1]
    head = session.stores.lineage.history.head()
    assert (head.revision, head.iteration, head.state["metrics"]) == (1, 0, {"agent/success/train": 0.25})


def test_what_was_frozen_is_committed_though_what_follows_fails(session, published):
    with pytest.raises(ZeroDivisionError), closing(Committer(session)) as keeping:
        keeping.begin()
        raise ZeroDivisionError
    assert session.stores.lineage.history.head().revision == 1
    assert published == [1]


def test_a_commit_that_the_run_waits_for_is_reported(session, published):
    heard = Listener()
    with reporting_to(heard), closing(Committer(session)) as keeping:
        keeping.begin()
        keeping.wait()
        keeping.wait()  # for nothing
    assert heard.notes == ["r1 commit", ""]


def test_a_commit_that_fails_is_raised_once_where_it_is_waited_for(session, published):
    session.pending.metrics["agent/success/train"] = float("nan")
    with closing(Committer(session)) as keeping:
        keeping.begin()
        with pytest.raises(CoevoError, match="agent/success/train"):
            keeping.wait()
    assert session.stores.lineage.history.head().revision == 0
    assert published == []


def test_a_commit_that_fails_comes_before_what_failed_beside_it(session, published):
    session.pending.metrics["agent/success/train"] = float("nan")
    with pytest.raises(CoevoError, match="agent/success/train"), closing(Committer(session)) as keeping:
        keeping.begin()
        raise ZeroDivisionError


DYING = """
import os, signal, sys
from pathlib import Path

from support.lineage_driver import run_in

from coevo.configs import sections
from coevo.tasks.commit import remove_superseded
from coevo.lineage.workspace import Workspace

unlink = Path.unlink

def dying(path, missing_ok=False):
    if not path.name.endswith(".dir"):  # every list is gone, and no file is
        os.kill(os.getpid(), signal.SIGKILL)
    unlink(path, missing_ok=missing_ok)

Path.unlink, sections.LARGE_OPTIMIZER = dying, 0
remove_superseded(Workspace(Path(sys.argv[1])), run_in(sys.argv[1]))
"""


@pytest.fixture(autouse=True, scope="module")
def every_size_is_large():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "LARGE_OPTIMIZER", 0)
        yield


@pytest.fixture(scope="module")
def played(tmp_path_factory, every_size_is_large):
    """A run of thirteen revisions, 0 to 12, each with an optimizer; of these 0, 10 and 12 keep it."""
    directory = tmp_path_factory.mktemp("thirteen")
    play(directory, 13)
    return directory


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def run(played, directory):
    """A copy of that run, in ``directory``."""
    shutil.copytree(played, directory)
    return run_in(directory)


def held(directory):
    """Revisions whose optimizer is in the cache."""
    cache = Cache(directory / "cache")
    contents = [manifest.artifacts["optimizer"] for manifest in lineage_in(directory).history.log()]
    return [number for number, content in enumerate(contents) if cache.problem(content) is None]


def remove(directory):
    return remove_superseded(Workspace(directory), run_in(directory))


def test_the_manifest_names_what_the_next_revision_removes(directory, run):
    log = lineage_in(directory).history.log()
    assert [manifest.revision for manifest in log if manifest.until_next] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
    assert log[3].kept(3).keys() == {"policy", "optimizer", "episodes"}
    assert log[3].kept(12).keys() == {"policy", "episodes"}
    assert log[10].kept(12).keys() == {"policy", "optimizer", "episodes"}


def test_a_small_optimizer_stays_in_every_revision_and_in_no_manifest(directory, monkeypatch):
    monkeypatch.setattr(sections, "LARGE_OPTIMIZER", 2**30)
    play(directory, 4)
    assert [manifest.state.get("until_next") for manifest in lineage_in(directory).history.log()] == [None] * 4
    remove(directory)
    assert held(directory) == [0, 1, 2, 3]


def test_only_the_optimizer_of_the_last_and_every_tenth_revision_stays(directory, run):
    assert held(directory) == list(range(13))
    assert remove(directory) > 0
    assert held(directory) == [0, 10, 12]
    assert remove(directory) == 0
    with lineage_in(directory) as lineage:
        assert not lineage.recover(Shelf(run.bank))
        for revision in range(13):
            lineage.artifacts.materialise(revision, "policy", directory / "out" / str(revision))
    play(directory, 14)
    remove(directory)
    assert held(directory) == [0, 10, 13]


def test_nothing_is_removed_while_another_process_may_need_it(directory, run):
    for lock in (cache_lock(directory / "cache"), runs_lock(directory)):
        with lock:
            assert remove(directory) == 0
    assert held(directory) == list(range(13))


def test_what_another_run_keeps_stays(directory, run):
    other = run_in(directory).root.with_name("other")
    run.root.rename(other)  # an equal run whose last revision is 11 keeps that one's optimizer
    play(directory, 12)
    remove_superseded(Workspace(directory), Workspace(directory).run("other"))
    assert held(directory) == [0, 10, 11]


def test_a_kill_while_it_removes_leaves_a_run_that_the_next_removal_completes(directory, run):
    killed(DYING, directory)
    with lineage_in(directory) as lineage:
        assert not lineage.recover(Shelf(run.bank))
    assert held(directory) == [0, 10, 12]
    with pytest.raises(CoevoError, match="its optimizer was removed"):
        lineage_in(directory).artifacts.require(3)
    play(directory, 14)
    remove(directory)
    assert held(directory) == [0, 10, 13]


def test_rollback_names_the_nearest_revision_that_has_one(directory, run):
    remove(directory)
    with lineage_in(directory) as lineage:
        with pytest.raises(CoevoError) as caught:
            lineage.rollback(7, Shelf(run.bank))
        assert str(caught.value) == (
            "run 'first', revision 7: its optimizer was removed when a newer revision had one "
            "(lineage.optimizer_every): choose revision 10, the nearest that has one, or begin a new one with "
            "--without-optimizer"
        )
        assert lineage.history.head().revision == 12
        assert not lineage.recover(Shelf(run.bank))
        made = lineage.rollback(7, Shelf(run.bank), ["optimizer"])
        assert (made.revision, made.iteration, sorted(made.artifacts)) == (13, 7, ["episodes", "policy"])
        assert lineage.rollback(7, Shelf(run.bank), ["optimizer"]) == made
        assert (
            lineage.rollback(10, Shelf(run.bank)).artifacts["optimizer"]
            == lineage.history.manifest(10).artifacts["optimizer"]
        )
        assert not lineage.recover(Shelf(run.bank))
    remove(directory)
    assert held_by_number(directory) == {0, 10, 14}


def held_by_number(directory):
    cache = Cache(directory / "cache")
    found = ((each.revision, each.artifacts.get("optimizer")) for each in lineage_in(directory).history.log())
    return {number for number, content in found if content and cache.problem(content) is None}
