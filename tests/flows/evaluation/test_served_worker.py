"""Rows that a served agent is asked with, and servers that are none."""

import pytest
from support.completions import Answer, completions, said
from support.worker import CONFIG, environment, worker

from coevo.flows.evaluation.served_worker import MAX_SERVED_BYTES, ServedWorker, _row
from coevo.records.draws import key
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.play import Attempt
from coevo.tasks.play.retrieve import NOTHING
from coevo.utilities.errors import CoevoError


def test_a_row_holds_what_the_policy_sees():
    env = environment()
    (task,) = env.sample(1, key("row"))
    (live,) = worker().begin([Attempt(task, 0, (), "served", 0, key("row"))])
    row = _row(live)
    assert (row["guide"], row["instruction"], row["observation"]) == (
        env.guide(task).text, task.instruction, live.observation,
    )  # fmt: skip
    assert (row["scope"], row["kind"], row["task"], row["history"]) == (task.scope, task.kind, task.id, [])


REPLY = {"text": "x", "thought": "", "action": "go safe", "retrieved": []}
NONE = {
    "a page": Answer(b"<html>hello</html>"),
    "nothing": Answer(b""),
    "no text": Answer(b"\xff\xfe"),
    "deep": Answer(b"[" * 10**5),
    "deep in its place": Answer(b'{"predictions": ' + b"[" * 10**5),
    "a list": Answer([b"[]"]),
    "an API": said("hello"),
    "another object": Answer({"choices": []}),
    "predictions of another kind": Answer({"predictions": {"0": 1}}),
    "answers of another kind": Answer({"predictions": [0.5, 0.5]}),
    "answers with fields missing": Answer({"predictions": [{"text": "x"}] * 2}),
    "numbers for texts": Answer({"predictions": [REPLY | {"action": 3}] * 2}),
    "ids that are none": Answer({"predictions": [REPLY | {"retrieved": [3]}] * 2}),
    "too few answers": Answer({"predictions": [REPLY]}),
    "not found": Answer({"message": "no\nsuch\x1b[31m page"}, 404),
    "not allowed": Answer(b"[" * 10**5, 405),
    "elsewhere": Answer(b"", 302, {"Location": "/v2"}),
}


def _served(url):
    return ServedWorker(environment(), url, 0, CONFIG.rollout.max_turns)


def evaluated(answer):
    """Requests of an evaluation against a server that always answers so, and its error."""
    with completions(lambda _: answer) as (url, asked), pytest.raises(CoevoError) as refused:
        play_panel(_served(url.removesuffix("/v1")), environment().panel("seen-houses", 2), NOTHING, 0, 0)
    assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value) and len(str(refused.value)) < 600
    return asked, str(refused.value)


@pytest.mark.parametrize("answer", NONE.values(), ids=NONE)
def test_a_server_of_something_else_is_refused_in_one_line(answer):
    asked, line = evaluated(answer)
    assert "/invocations is no `coevo serve` (" in line and line.endswith("for an API add policy.model=NAME")
    assert len(asked) == 1  # no redirection is followed


def test_a_response_without_an_end_is_not_read_on():
    sent = []
    endless = (sent.append(1) or b" " * 2**20 for _ in range(10**6))
    assert f"more than {MAX_SERVED_BYTES} bytes" in evaluated(Answer(endless))[1]
    assert len(sent) <= MAX_SERVED_BYTES // 2**20 + 16


def test_a_refusal_without_an_end_is_not_read_on():
    sent = []
    endless = (sent.append(1) or b" " * 2**20 for _ in range(10**6))
    assert "refuses: 500" in evaluated(Answer(endless, 500))[1]
    assert len(sent) < 50


def test_a_response_that_breaks_off_is_said_in_one_line():
    assert "does not answer (" in evaluated(Answer(b"{", headers={"Transfer-Encoding": "chunked"}))[1]
