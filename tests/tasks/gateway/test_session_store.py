"""A session that was kept is read back as it was, whatever happens to the file behind it."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.records.episode import Completion
from coevo.records.message import Message, MessageCall
from coevo.records.metric_names import SCORES, metric_name
from coevo.tasks.gateway.gateway_session import OverError, SessionLimits, Sessions
from coevo.tasks.gateway.memory_bound import FullError
from coevo.tasks.gateway.session_store import (
    SessionOutcome,
    SessionRecord,
    SessionStore,
    SessionTask,
    StepReport,
    read_sessions,
)
from coevo.tasks.gateway.session_tree import AskedPrompt, HistoryMatch
from coevo.utilities.errors import CoevoError

WON = SessionOutcome(reward=1.0, success=True)
ASKED = AskedPrompt(HistoryMatch(None, (Message("user", "a\u2028b"),)), "[]", ("e1",), (7, 8))


STORES = {}


def sessions(directory, limits=None, mode="training"):
    STORES[directory] = SessionStore(directory)
    return Sessions(STORES[directory], limits or SessionLimits(), mode, "first@3", "first@3")


def answered(session, text="so", ids=(1, 2), logprobs=(-0.5, -0.25), calls=()):
    messages = [Message("user", "a\u2028b")]
    asked = AskedPrompt(session.tree.match(messages, "[]"), "[]", ("e1",), (7, 8))
    session.tree.add(asked, Completion(ids, logprobs, text, True), Message.answer(text, calls))
    return session


def crash(directory):
    """Let another process open the sessions, as the death of theirs does."""
    STORES.pop(directory).close()


def kept(directory, mode="training"):
    return {each.session: each for each in read_sessions(directory / f"{mode}.jsonl")}


TOKENS = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.floats(-1e300, 0)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(drawn=TOKENS, text=st.text(max_size=20), arguments=st.text(max_size=10))
def test_tokens_and_log_probs_come_back_bit_by_bit(drawn, text, arguments, tmp_path_factory):
    directory = tmp_path_factory.mktemp("store")
    found = sessions(directory)
    ids, logprobs = tuple(each for each, _ in drawn), tuple(each for _, each in drawn)
    session = answered(found.open("one"), text, ids, logprobs, (MessageCall.of("go", arguments, "c"),))
    found.end("one", WON)()
    crash(directory)
    (turn,) = kept(directory)["one"].turns
    assert (turn.token_ids, turn.logprobs, turn.added) == (ids, logprobs, (7, 8))
    assert turn.answer.text == session.tree.turns[0].answer.text
    assert turn.answer.calls[0].arguments == session.tree.turns[0].answer.calls[0].arguments


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_a_line_that_was_cut_off_is_removed_and_its_session_lost(tmp_path, cut):
    found = sessions(tmp_path)
    for name in ("one", "two"):
        answered(found.open(name))
        found.end(name, WON)()
    crash(tmp_path)
    file = tmp_path / "training.jsonl"
    os.truncate(file, file.stat().st_size - cut)
    again = sessions(tmp_path)
    assert again.counts() == {"open": 0, "outcome": 1, "abandoned": 0, "lost": 1 if cut else 0, "late": 0}
    assert kept(tmp_path)["one"].outcome == WON
    assert kept(tmp_path)["two"].end == "lost"
    answered(again.open("three"))
    again.end("three", WON)()
    assert list(kept(tmp_path)) == ["one", "two", "three"]
    crash(tmp_path)


def test_what_was_open_is_lost_and_nothing_else(tmp_path):
    found = sessions(tmp_path)
    answered(found.open("done"))
    found.end("done", WON)()
    answered(found.open("flight"))
    crash(tmp_path)
    again = sessions(tmp_path)
    assert again.counts()["lost"] == 1
    assert kept(tmp_path)["done"].turns
    with pytest.raises(OverError, match="too late"):
        again.end("flight", WON)
    assert again.counts()["late"] == 1
    assert again.end("done", WON)().end == "outcome"
    with pytest.raises(OverError, match="is over"):
        again.open("done")
    crash(tmp_path)


def test_sessions_that_nobody_uses_are_abandoned(tmp_path):
    found = sessions(tmp_path, SessionLimits(idle=-1.0))
    with answered(found.open("idle")).drawing(ASKED, 1):
        found.expire()
        assert found.counts()["open"] == 1
    found.expire()
    assert found.counts() == {"open": 0, "outcome": 0, "abandoned": 1, "lost": 0, "late": 0}
    assert kept(tmp_path)["idle"].outcome is None
    crash(tmp_path)


def test_the_number_of_open_sessions_has_a_bound(tmp_path):
    found = sessions(tmp_path, SessionLimits(sessions=2))
    for name in ("one", "two"):
        answered(found.open(name))
    with pytest.raises(FullError, match="2 sessions are open"):
        found.open("three")
    found.end("one", WON)()
    assert found.open("three").name == "three"
    crash(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "ä", "a" * 101, "\n"])
def test_a_name_stays_below_its_directory(tmp_path, name):
    found = sessions(tmp_path)
    with pytest.raises(CoevoError, match="cannot name a session"):
        found.open(name)
    crash(tmp_path)


def test_one_process_writes_at_a_time(tmp_path):
    sessions(tmp_path)
    with pytest.raises(CoevoError, match="another gateway of this run is open"):
        SessionStore(tmp_path)
    crash(tmp_path)


def test_a_session_that_cannot_be_kept_stays_open(tmp_path, monkeypatch):
    found = sessions(tmp_path)
    answered(found.open("one"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            found.end("one", WON)()
    assert not kept(tmp_path)
    assert found.end("one", WON)().end == "outcome"
    assert list(kept(tmp_path)) == ["one"]
    crash(tmp_path)


@pytest.mark.parametrize(
    ("turns", "match"), [((2,), "2 answers, and turn 2 is none"), ((1, 0, 1), "turn 1 .* 2 reports")]
)
def test_steps_are_of_answers_that_the_session_has_each_once(tmp_path, turns, match):
    found = sessions(tmp_path)
    answered(answered(found.open("one")), "more")
    steps = tuple(StepReport(turn=turn, reward=0.5) for turn in turns)
    with pytest.raises(CoevoError, match=match):
        found.end("one", SessionOutcome(reward=1.0, success=True, steps=steps))
    assert found.end("one", SessionOutcome(reward=1.0, success=True, steps=steps[:0]))().end == "outcome"
    crash(tmp_path)


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_whose_outcome_is_being_written_is_over(tmp_path, fails, monkeypatch):
    found = sessions(tmp_path)
    answered(found.open("one"))
    keep = found.end("one", WON)
    for ask in (found.open, found.use):
        with pytest.raises(OverError, match=r"one is over \(outcome\)"):
            ask("one")
    with pytest.raises(OverError, match="too late"):
        found.end("one", SessionOutcome(reward=0.0, success=False))
    again = found.end("one", WON)
    with ThreadPoolExecutor(1) as other, monkeypatch.context() as patch:
        waiting = other.submit(again)
        if fails:
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
            for each in (keep, waiting.result):
                with pytest.raises(OSError, match="full"):
                    each()
        else:
            assert keep() == waiting.result()
    if fails:
        assert found.end("one", WON)().end == "outcome"
    assert [each.end for each in read_sessions(tmp_path / "training.jsonl")] == ["outcome"]
    assert found.counts() == {"open": 0, "outcome": 1, "abandoned": 0, "lost": 0, "late": 0}
    crash(tmp_path)


def record(name):
    return SessionRecord(
        session=name, end="abandoned", outcome=None, mode="training", group="", task=SessionTask(), policy="p", bank="",
        turns=(),
    )  # fmt: skip


def test_a_name_is_kept_once(tmp_path):
    found = SessionStore(tmp_path)
    found.keep(record("one"))
    with pytest.raises(CoevoError, match="session one is on the disk already"):
        found.keep(record("one"))
    found.close()
    assert len(list(read_sessions(tmp_path / "training.jsonl"))) == 1


def test_sessions_are_counted_while_others_end(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    found, every = sessions(tmp_path), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as other:
            kept = other.submit(lambda: [STORES[tmp_path].keep(record(f"s{number}")) for number in range(3000)])
            seen = []
            while not kept.done():
                seen.append(found.counts()["abandoned"])
    finally:
        sys.setswitchinterval(every)
    kept.result()
    assert seen == sorted(seen)
    assert found.counts()["abandoned"] == 3000
    crash(tmp_path)


def test_a_session_that_cannot_be_written_stays_open_and_does_not_stop_the_others(tmp_path):
    found = sessions(tmp_path, SessionLimits(idle=-1.0))
    answered(found.open("bad"))
    found.open("bad").tree.turns[0].token_ids[0] = 2**32 - 1
    answered(found.open("good"))
    assert len(found.expire()) == 1
    assert found.counts() == {"open": 1, "outcome": 0, "abandoned": 1, "lost": 0, "late": 0}
    with pytest.raises(ValueError, match="token_ids"):
        found.end("bad", WON)
    answered(found.open("half"), text="\ud83d")
    for _ in range(2):
        with pytest.raises(ValueError, match="surrogates"):
            found.end("half", WON)()
    assert found.counts()["open"] == 2
    crash(tmp_path)


@given(names=st.lists(st.text("ab_1", min_size=1, max_size=5), unique=True, max_size=6), data=st.data())
def test_an_outcome_is_one_whatever_the_order_of_its_scores(names, data):
    first, second = (
        SessionOutcome(reward=1.0, success=True, scores={name: float(len(name)) for name in order})
        for order in (names, data.draw(st.permutations(names)))
    )
    assert first.digest == second.digest
    assert first.digest != WON.digest or not names


@settings(max_examples=300)
@given(name=st.text(max_size=6) | st.text("aZ9_-./@ :%", max_size=6) | st.text("a", min_size=95, max_size=105))
def test_a_score_has_a_name_that_every_tracker_of_metrics_takes(name):
    try:
        SessionOutcome(reward=1.0, success=True, scores={name: 0.5})
    except ValueError:
        assert not re.fullmatch(r"[a-z0-9_]{1,100}", name)
        return
    metric = metric_name(f"{SCORES}/train/{name}")
    assert re.fullmatch(r"agent/rewards/train/[\w.\- :]+", metric)  # MLflow's rule


@pytest.mark.parametrize("mode", ["training", "evaluation"])
def test_a_lost_session_keeps_its_mode(tmp_path, mode):
    found = sessions(tmp_path)
    answered(found.open("flight", mode))
    crash(tmp_path)
    again = sessions(tmp_path)
    assert again.counts()["lost"] == 1
    assert (kept(tmp_path, mode)["flight"].end, kept(tmp_path, mode)["flight"].mode) == ("lost", mode)
    crash(tmp_path)


def test_evaluation_leaves_no_trace_in_what_teaches(tmp_path):
    found = sessions(tmp_path, mode="evaluation")
    answered(found.open("exam"))
    found.end("exam", WON)()
    assert (list(kept(tmp_path)), list(kept(tmp_path, "evaluation"))) == ([], ["exam"])
    crash(tmp_path)


@pytest.mark.parametrize("line", ["{}", "[1]", "{", '{"session": "x"}'])
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "training.jsonl").write_text(f"{line}\n")
    with pytest.raises(CoevoError, match=r"training.jsonl: line 1 is no session"):
        SessionStore(tmp_path)


def test_token_ids_of_a_file_are_checked(tmp_path):
    found = sessions(tmp_path)
    answered(found.open("one"))
    found.end("one", WON)()
    crash(tmp_path)
    file = tmp_path / "training.jsonl"
    record = json.loads(file.read_text())
    record["turns"][0]["token_ids"] = [-1, 2]
    file.write_text(json.dumps(record) + "\n")
    with pytest.raises(CoevoError, match="is no session"):
        list(read_sessions(file))
