"""Questions to an endpoint: what is sent, what comes back, and that no question is lost."""

import socket
import threading
import time
from itertools import count

import pytest
from support.completions import HANGS, HANGS_UP, Answer, completions, refused, said
from support.writer_models import SCHEMA, question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models import chat_endpoint
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel

SENT = {"host", "connection", "accept", "content-type", "content-length", "user-agent", "accept-encoding"}


def writer_model(url, warn=None, **settings):
    settings = {"model": "m", "retries": 0, **settings}
    return EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url=url, **settings), warn or pytest.fail)


def asked(url, questions, **settings):
    """Replies in the order of the questions."""
    found = dict(writer_model(url, **settings).replies(questions))
    assert sorted(found) == list(range(len(questions)))
    return [found[place] for place in range(len(questions))]


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "writer_model"]


def test_a_question_is_sent_as_it_is_and_answered_without_its_thinking():
    answer = said("<think>\nhm\n</think>\n\nlook first ", reasoning_content="hm")
    with completions(lambda _: answer) as (url, requests):
        (reply,) = asked(url, [question("why \ud800?")], extra={"chat_template_kwargs": {"thinking": False}})
    assert (reply.text, reply.finished, reply.fault) == ("look first", True, "")
    assert (reply.prompt_tokens, reply.answer_tokens) == (7, 3)
    (request,) = requests
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "why ??"}],
        "temperature": 0.7,
        "max_tokens": 1024,
        "chat_template_kwargs": {"thinking": False},
    }
    assert request.headers.keys() == SENT


def test_tokens_that_an_endpoint_does_not_report_are_estimated():
    silent = Answer({key: value for key, value in said("look first").sent.items() if key != "usage"})
    heard = []
    with completions(lambda _: silent) as (url, _):
        for _ in range(2):
            replies = asked(url, [question("why?"), question("why not?")], warn=heard.append)
    sizes = [len(f"Be brief.{text}") // 3 + 1 for text in ("why?", "why not?")]
    assert [(reply.prompt_tokens, reply.answer_tokens) for reply in replies] == [(size, 4) for size in sizes]
    assert (
        heard == [f"{url} reports no tokens: they are estimated, one for 3 bytes of text"] * 2
    )  # once per writer model


def without_usage(answer, **usage):
    return Answer({key: value for key, value in answer.sent.items() if key != "usage"} | usage)


LIST = {"choices": [{"message": {"content": [{"text": "x"}]}}]}
ASKED = len("Be brief.why?") // 3 + 1
EXPENSES = {
    "only the question's": (without_usage(said("x" * 300), usage={"prompt_tokens": 7}), 7, 101),
    "nulls": (
        without_usage(said("x" * 300), usage={"prompt_tokens": None, "completion_tokens": None}),
        ASKED,
        101,
    ),
    "only the answer's": (without_usage(said("x"), usage={"completion_tokens": 3}), ASKED, 3),
    "thinking": (without_usage(said("<think>x</think>y")), ASKED, 6),
    "a refusal": (without_usage(said(None, refusal="x" * 300)), ASKED, 101),
    "a filtered answer": (without_usage(said(None, "content_filter")), ASKED, 1),
    "no text": (without_usage(said(None, "tool_calls")), ASKED, 1),
    "no completion that reports tokens": (Answer(LIST | {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}), 7, 3),
    "no completion": (Answer(b"x" * 300), ASKED, 101),
    "no completion, of great length": (Answer(b"x" * 30_000), ASKED, 1024),
    "an error": (refused("x" * 300, 400), 0, 0),
    "no answer": (HANGS_UP, 0, 0),
}


@pytest.mark.parametrize(("answer", "prompt", "answered"), EXPENSES.values(), ids=EXPENSES)
def test_an_answer_that_nothing_comes_of_costs_tokens_and_a_request_that_fails_costs_none(answer, prompt, answered):
    with completions(lambda _: answer) as (url, _):
        (reply,) = asked(url, [question("why?")], warn=lambda line: None)
    assert (reply.prompt_tokens, reply.answer_tokens) == (prompt, answered)


SPENT = "the model's thinking used up bank.writer.model.max_new_tokens=1024: raise it, or let it think less"
ENDS = {
    "cut off": (said("so", "length"), "so", False, ""),
    "cut off while thinking": (said(None, "length"), "", False, SPENT),
    "refused": (said(None, refusal="I\ncannot"), "", False, "the model refuses to answer: I cannot"),
    "filtered": (said("so", "content_filter"), "", False, "the endpoint filtered the answer"),
    "no text": (said(None, "tool_calls"), "", False, "the endpoint's answer has no text"),
}


@pytest.mark.parametrize(("answer", "text", "finished", "fault"), ENDS.values(), ids=ENDS)
def test_each_end_of_an_answer(answer, text, finished, fault):
    with completions(lambda _: answer) as (url, _):
        (reply,) = asked(url, [question()])
    assert (reply.text, reply.finished, reply.fault) == (text, finished, fault)
    assert (reply.prompt_tokens, reply.answer_tokens) == (7, 3)


def test_of_64_questions_in_flight_none_is_lost_if_one_call_in_ten_fails():
    gate = threading.Barrier(64)
    faults = (
        Answer(b"busy", 503),
        refused("slow down", 429, Retry_After="0.1"),
        HANGS_UP,
        Answer(b'{"choices": [', 500),
    )

    def behave(request):
        if request.number < 64:
            gate.wait(30)  # opens when 64 questions are in flight
        if request.number % 10 == 0:
            return faults[request.number // 10 % len(faults)]
        return said(request.user.upper(), used=(1, 2))

    questions = [question(f"question {number}") for number in range(64)]
    with completions(behave) as (url, requests):
        replies = asked(url, questions, concurrency=64, retries=4)
    assert [(reply.text, reply.fault) for reply in replies] == [(each.user.upper(), "") for each in questions]
    assert len(requests) == 64 + sum(request.number % 10 == 0 for request in requests) > 70


def test_no_more_questions_wait_than_are_allowed():
    waiting, most, counting = 0, 0, threading.Lock()

    def behave(_):
        nonlocal waiting, most
        with counting:
            waiting += 1
            most = max(most, waiting)
        time.sleep(0.02)
        with counting:
            waiting -= 1
        return said("x")

    with completions(behave) as (url, _):
        asked(url, [question(str(number)) for number in range(20)], concurrency=3)
    assert most == 3


def test_the_pause_that_an_endpoint_names_is_kept():
    with completions(lambda it: said("x") if it.number else refused("wait", 429, Retry_After="1.5")) as (url, requests):
        since = time.monotonic()
        (reply,) = asked(url, [question()], retries=1)
    assert reply.text == "x" and len(requests) == 2
    assert 1.5 <= time.monotonic() - since < 30


def test_an_endpoint_that_hangs_or_names_a_long_pause_ends_with_the_time_and_the_others_are_answered():
    slow = {"1": HANGS, "2": refused("wait", 429, Retry_After="60")}
    with completions(lambda it: slow.get(it.user) or said(it.user)) as (url, requests):
        since = time.monotonic()
        replies = asked(url, [question(str(number)) for number in range(4)], seconds=5.0, retries=4, concurrency=4)
        assert time.monotonic() - since < 40
    assert [reply.text for reply in replies] == ["0", "", "", "3"]
    late = "the endpoint did not answer within bank.writer.model.seconds=5"
    assert [reply.fault for reply in replies] == ["", late, late, ""]
    assert len(requests) == 4
    assert not threads()


@pytest.mark.parametrize("pause", [0.2, 30.0], ids=["never ends", "hangs after its headers"])
def test_a_body_that_does_not_end_is_given_up(pause):
    with completions(lambda _: Answer((b" " for _ in count()), pause=pause)) as (url, _):
        since = time.monotonic()
        (reply,) = asked(url, [question()], timeout=0.5)
        assert time.monotonic() - since < 25
    assert reply.fault.startswith("the endpoint does not answer (")


@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        (HANGS_UP, "the endpoint does not answer ("),
        (HANGS, "the endpoint does not answer (nothing within bank.writer.model.timeout=0.5)"),
        (Answer(b"no backend", 502), "the endpoint refuses (502: no backend)"),
    ],
    ids=["hangs up", "hangs", "has no backend"],
)
def test_a_dead_endpoint_is_not_asked_every_question(behaviour, fault):
    questions = [question(str(number)) for number in range(40)]
    with completions(lambda _: behaviour) as (url, requests):
        replies = asked(url, questions, concurrency=1, timeout=0.5 if behaviour is HANGS else 60.0)
    assert len(requests) == 3
    assert [reply.fault.startswith(fault) for reply in replies] == [True] * 3 + [False] * 37
    resting = "the endpoint is not asked for 300 s, since it answered none of 3 questions in a row"
    assert {reply.fault for reply in replies[3:]} == {resting}


@pytest.mark.parametrize("behaviour", [HANGS_UP, HANGS], ids=["hangs up", "hangs"])
def test_a_dead_endpoint_refuses_the_next_batches_at_once_and_is_asked_again_later(monkeypatch, behaviour):
    """Discovery@k asks batch after batch."""
    now, alive = [0.0], []
    monkeypatch.setattr(chat_endpoint, "monotonic", lambda: now[0])
    with completions(lambda it: said(it.user) if alive else behaviour) as (url, requests):
        asking = writer_model(url, seconds=3.0)
        for number in range(3):
            assert dict(asking.replies([question(str(number))]))[0].fault
        since, sent = time.monotonic(), len(requests)
        for _ in range(5):
            assert dict(asking.replies([question()]))[0].fault == chat_endpoint.RESTING
        assert time.monotonic() - since < 12  # five times three seconds, if it were asked
        assert len(requests) == sent == 3
        alive.append(True)
        now[0] += chat_endpoint.REST
        assert dict(asking.replies([question("why?")]))[0].text == "why?"


def test_a_closed_port_is_a_fault_and_a_proxy_is_not_asked_about_this_machine(monkeypatch):
    with completions(lambda _: said("of the proxy")) as (proxy, _):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            (reply,) = asked(f"http://127.0.0.1:{closed.getsockname()[1]}/v1", [question()])
    assert reply.fault.startswith("the endpoint does not answer (") and "fail" in reply.fault


@pytest.mark.parametrize("charset", ["utf-16", "undefined", "idna", "zlib", "base64"])
def test_an_error_is_read_as_utf_8_whatever_charset_it_names(charset):
    page = Answer(
        b'{"error": {"message": "overloaded"}}', 400, {"Content_Type": f"application/json; charset={charset}"}
    )
    with completions(lambda _: page) as (url, _):
        ((_, reply),) = writer_model(url).replies([question()])
    assert reply.fault == "the endpoint refuses (400: overloaded)"


def test_an_endpoint_that_answers_now_and_then_is_asked_every_question():
    with completions(lambda it: said("x") if it.number % 3 == 2 else HANGS_UP) as (url, requests):
        replies = asked(url, [question(str(number)) for number in range(12)], concurrency=1)
    assert len(requests) == 12
    assert [reply.text for reply in replies] == ["", "", "x"] * 4


def test_closing_abandons_what_is_not_answered_yet_and_no_question_is_no_request():
    arrived = threading.Barrier(4)

    def behave(request):
        arrived.wait(30)  # opens when all four are in flight: one that arrives after the count would be a late one
        return said("x") if request.user == "0" else HANGS

    with completions(behave) as (url, requests):
        replies = writer_model(url, concurrency=4).replies([question(str(number)) for number in range(4)])
        assert next(replies)[0] == 0
        since = time.monotonic()
        replies.close()
        assert asked(url, []) == []
        assert time.monotonic() - since < 10
        assert len(requests) == 4
    assert not threads()


def strict(*accepted):
    """An endpoint that knows only these response formats."""

    def behave(request):
        kind = request.body.get("response_format", {}).get("type")
        return said("{}") if kind in accepted else refused(f"response_format.type={kind} is not supported", 422)

    return behave


@pytest.mark.parametrize(
    ("accepted", "kinds", "kind"),
    [
        (["json_schema"], ["json_schema"], "json_schema"),
        (["json_object"], ["json_schema", "json_object"], "json_object"),
        ([None], ["json_schema", "json_object", None], None),
    ],
)
def test_a_constraint_that_the_endpoint_refuses_is_weakened_once_and_reported(accepted, kinds, kind):
    warned = []
    with completions(strict(*accepted)) as (url, requests):
        made = writer_model(url, warned.append, concurrency=1)
        for _ in range(2):
            for _, reply in made.replies([question(schema=SCHEMA), question("other", schema=SCHEMA)]):
                assert (reply.text, reply.fault) == ("{}", "")
    asked_for = [request.body.get("response_format", {}).get("type") for request in requests]
    assert asked_for == [*kinds, kind, kind, kind]
    assert len(warned) == len(kinds) - 1
    for line, weaker in zip(warned, ("json", "none"), strict=False):
        assert line.endswith(f"bank.writer.model.constrain={weaker} asks so at once")
        assert url in line and "\n" not in line


def test_a_schema_is_sent_as_the_api_wants_it_and_only_with_a_schema_and_a_null_leaves_a_field_out():
    extra = {"max_tokens": None, "max_completion_tokens": 9}
    with completions(lambda _: said("{}")) as (url, requests):
        asked(url, [question(schema=SCHEMA, purpose="edit pool"), question()], concurrency=1, extra=extra)
    assert "max_tokens" not in requests[0].body
    assert requests[0].body["max_completion_tokens"] == 9
    sent = requests[0].body["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"], sent["schema"]["required"]) == ("edit_pool", True, ["lesson"])
    assert "response_format" not in requests[1].body


def test_many_questions_at_once_weaken_a_constraint_once():
    gate, warned = threading.Barrier(8), []

    def behave(request):
        if request.number < 8:
            gate.wait(30)
        return strict("json_object")(request)

    with completions(behave) as (url, requests):
        made = writer_model(url, warned.append, concurrency=8)
        replies = [reply for _, reply in made.replies([question(str(n), schema=SCHEMA) for n in range(8)])]
    assert [reply.text for reply in replies] == ["{}"] * 8
    assert (len(warned), len(requests)) == (1, 16)


def test_a_chosen_constraint_and_one_that_is_not_refused_are_not_weakened():
    with completions(strict(None)) as (url, requests):
        (reply,) = asked(url, [question(schema=SCHEMA)], constrain="schema")
        (other,) = asked(url, [question(schema=SCHEMA)], constrain="none")
    assert reply.fault == "the endpoint refuses (422: response_format.type=json_schema is not supported)"
    assert other.text == "{}" and len(requests) == 2
    with completions(lambda _: refused("no model 'm'")) as (url, requests):
        (reply,) = asked(url, [question(schema=SCHEMA)])
    assert reply.fault == "the endpoint refuses (400: no model 'm')" and len(requests) == 1
