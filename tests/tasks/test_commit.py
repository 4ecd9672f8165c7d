"""A revision is committed beside what follows, and is there whatever that comes to."""

from contextlib import closing
from threading import Event

import pytest
from support.listener import Listener
from support.sessions import opened

from coevo.configs.load.load import load_recipe
from coevo.tasks import commit as module
from coevo.tasks.commit import Committer
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
