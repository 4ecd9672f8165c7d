"""Sessions of a gateway count their bytes, are bounded, and are never forgotten."""

import tracemalloc

import pytest
from support.gateway_turns import grown

from coevo.records.message import Message
from coevo.tasks.gateway.gateway_session import GatewaySession, SessionLimits, Sessions
from coevo.tasks.gateway.memory_bound import MIB, FullError
from coevo.tasks.gateway.session_store import SessionOutcome, SessionStore, SessionTask
from coevo.tasks.gateway.session_tree import AskedPrompt


@pytest.fixture
def sessions(tmp_path):
    """Sessions of a gateway with small bounds."""
    store = SessionStore(tmp_path)
    yield Sessions(store, SessionLimits(memory=MIB, each=MIB // 2), "training", "first@3", "first@3")
    store.close()


def test_bytes_are_counted_as_they_are_taken():
    session = GatewaySession("s", "training", "", SessionTask())
    grown(session)
    tracemalloc.start()
    before = session.memory.used
    grown(session, 200)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken <= session.memory.used - before <= 2 * taken


def test_a_session_and_all_of_them_have_a_bound_until_outcomes_make_room(sessions):
    grown(sessions.open("large"), 45)
    with pytest.raises(FullError, match=r"session large is full: report its outcome: at most 0.5 MiB"):
        sessions.use("large")
    for name in ("two", "three"):
        grown(sessions.open(name), 20)
    with pytest.raises(FullError, match=r"the open sessions are full: report outcomes, .* at most 1 MiB"):
        sessions.use("two")
    with pytest.raises(FullError, match="the open sessions are full"):
        sessions.use("another")
    sessions.end("large", SessionOutcome(reward=1.0, success=True))()
    assert sessions.use("two").tree.turns
    assert sessions.use("another").open


TASKS = {
    "an instruction": {"instruction": "ab" * 2**14},
    "a text": {"data": {"text": "ab" * 2**14}},
    "lists": {"data": {"lists": [[] for _ in range(1000)]}},
    "mappings": {"data": {"mappings": [{"n": number} for number in range(500, 1000)]}},
    "nested": {"data": {str(number): {"at": [[number + 0.5]]} for number in range(500)}},
}


@pytest.mark.parametrize("fields", TASKS.values(), ids=TASKS)
def test_a_task_takes_memory_until_its_session_ends(sessions, fields):
    line = SessionTask(**fields).model_dump_json()
    tracemalloc.start()
    task = SessionTask.model_validate_json(line)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    first = sessions.open("s0", task=task)
    assert 0.7 * taken <= first.memory.used <= 3 * taken
    with pytest.raises(FullError, match="the open sessions are full"):
        for number in range(1, 100):
            sessions.open(f"s{number}", task=task)
    opened = sessions.counts()["open"]
    assert opened == MIB // first.memory.used
    grown(first)
    sessions.end("s0", SessionOutcome(reward=1.0, success=True))()
    assert sessions.open("again", task=task).open
    assert sessions.counts()["open"] == opened


def test_a_task_that_has_no_room_opens_nothing(sessions):
    with pytest.raises(FullError, match=r"session one is full: .* at most 0.5 MiB"):
        sessions.open("one", task=SessionTask(data={"text": "a" * MIB}))
    assert sessions.counts()["open"] == 0
    assert sessions.open("one").memory.used == 0


def test_a_request_that_has_no_room_is_refused_before_it_is_drawn(sessions):
    session = sessions.open("one")
    messages = (Message("user", "x" * MIB),)
    asked = AskedPrompt(session.tree.match(messages, "[]"), "[]", (), (1, 2))
    with pytest.raises(FullError, match="session one is full"), session.drawing(asked, 1):
        pytest.fail("it was drawn")
    assert (session.waiting, session.memory.used) == (0, 0)
