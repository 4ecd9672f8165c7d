"""The lines of a gateway's sessions are read once each, and only those that an iteration may learn from are kept."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.tasks.gateway.session_selection import TakenSessions
from coevo.tasks.gateway.session_store import SessionRecord, SessionTask
from coevo.tasks.iteration.agent_sessions import SessionLines
from coevo.utilities.errors import CoevoError


def line(number, text=""):
    record = SessionRecord(
        session=f"s{number}", end="abandoned", outcome=None, mode="training", group="",
        task=SessionTask(instruction=text), policy="p", bank="", turns=(),
    )  # fmt: skip
    return record.model_dump_json().encode() + b"\n"


def names(lines):
    return {number: record.session for number, record in lines.records.items()}


@settings(max_examples=100, deadline=None)
@given(data=st.data(), count=st.integers(0, 12), cut=st.booleans())
def test_lines_that_wait_or_are_new_are_kept_and_no_others(data, count, cut, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "training.jsonl"
    path.write_bytes(b"".join(map(line, range(count))) + (line(count)[:-9] if cut else b""))
    looked = data.draw(st.integers(0, 14))
    waiting = tuple(data.draw(st.sets(st.integers(0, looked - 1)))) if looked else ()
    last = data.draw(st.sampled_from([f"s{looked - 1}", "another"]))
    taken = TakenSessions(looked, last, waiting)
    lines = SessionLines(path, taken)
    known = 0 < looked <= count and last != "another"
    assert lines.taken == (taken if known else TakenSessions())
    kept = {*waiting, *range(looked, count)} if known else set(range(count))
    assert names(lines) == {number: f"s{number}" for number in sorted(kept)}
    with path.open("ab") as file:
        file.write((line(count)[-9:] if cut else line(count)) + line(count + 1) + line(count + 2)[:5])
    assert lines.read() == 2
    assert names(lines) == {number: f"s{number}" for number in sorted({*kept, count, count + 1})}
    assert lines.read() == 0


def test_a_run_that_is_resumed_keeps_what_it_learned_from_out_of_memory(tmp_path):
    path = tmp_path / "training.jsonl"
    with path.open("wb") as file:
        file.writelines(line(number, "x" * 2**16) for number in range(200))
    tracemalloc.start()
    lines = SessionLines(path, TakenSessions(199, "s198", (7,)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert names(lines) == {7: "s7", 199: "s199"}
    assert most < path.stat().st_size / 10


def test_a_damaged_line_is_named_by_its_number(tmp_path):
    path = tmp_path / "training.jsonl"
    path.write_bytes(line(0) + line(1))
    lines = SessionLines(path, TakenSessions(1, "s0"))
    with path.open("ab") as file:
        file.write(line(2) + b"{}\n")
    with pytest.raises(CoevoError, match=r"training.jsonl: line 4 is no session"):
        lines.read()
