"""A judge at an endpoint: a real server on this machine answers, well and badly."""

import json
import re
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.row_tables import configured, made, written

from coevo.envs.failures import EpisodeFailure
from coevo.envs.rows.endpoint_requests import CompletionsEndpoint, EndpointError
from coevo.envs.rows.function_pool import FunctionCalls, FunctionPool
from coevo.envs.rows.judge_reward import JudgeError, judge_key, number_in, question
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError, ConfigError

ROW = {"prompt": "what is 1 plus 1", "answer": "2", "facts": {"a": [1]}}
PROMPT = "Rate {answer} to {prompt} from 0 to 1. {{x}} {facts}"


def reply(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": {}}).encode()


@contextmanager
def judged(respond):
    """A server whose ``respond(number, question)`` returns state, body and headers; yields its URL and its requests."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, dict(self.headers), body))
            state, content, headers = respond(len(requests), body["messages"][0]["content"])
            self.send_response(state)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def settings(url, **more):
    return {"type": "judge", "url": url, "model": "m", "prompt": PROMPT, "seconds": 10.0, **more}


def outcomes(url, answers, **more):
    (callee,) = configured("rows.jsonl", settings(url, **more)).reward
    with closing(FunctionPool([callee], 1.0, 1)) as pool:
        (found,) = pool.call([FunctionCalls(callee, [(answer, ROW) for answer in answers])])
    return [str(each) if isinstance(each, EpisodeFailure) else each.value for each in found]


def test_a_judge_is_asked_once_per_answer_and_replies_with_a_number(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret-1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with judged(lambda number, asked: (200, reply(" 0.75\n"), {})) as (url, requests):
        assert outcomes(url, ["{prompt} 2", "3"], key="JUDGE_KEY", seed=7) == [0.75, 0.75]
    path, headers, body = next(each for each in requests if "{prompt} 2" in each[2]["messages"][0]["content"])
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret-1"
    asked = 'Rate {prompt} 2 to what is 1 plus 1 from 0 to 1. {x} {"a": [1]}'
    assert body == {
        "model": "m", "messages": [{"role": "user", "content": asked}], "temperature": 0, "seed": 7, "max_tokens": 16
    }  # fmt: skip
    assert len(requests) == 2


def test_questions_wait_side_by_side_within_their_limit():
    def respond(number, asked):
        time.sleep(0.5)
        return 200, reply("1"), {}

    with judged(respond) as (url, _):
        since = time.monotonic()
        assert outcomes(url, ["x"] * 16, concurrency=8) == [1.0] * 16
        assert time.monotonic() - since < 15


def test_a_failure_is_asked_again_and_a_refusal_is_not():
    failing = {1: 503, 2: 429}
    with judged(lambda number, asked: (failing.get(number, 200), reply("0.5"), {})) as (url, requests):
        assert outcomes(url, ["x"]) == [0.5]
        assert len(requests) == 3
    with judged(lambda number, asked: (401, b"", {})) as (url, requests):
        (said,) = outcomes(url, ["x"])
        assert "does not reply (state 401): start it, or correct url, key or model" in said
        assert len(requests) == 1
    with judged(lambda number, asked: (500, b"", {})) as (url, requests):
        assert "state 500" in outcomes(url, ["x"], retries=1)[0]
        assert len(requests) == 2


PAUSES = {
    "seconds": (429, b"", {"Retry-After": "1"}),
    "milliseconds": (503, b"", {"retry-after-ms": "900"}),
    "a date": (429, b"", {"Date": "Mon, 30 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 30 Nov 2026 10:00:01 GMT"}),
    "words": (429, b'{"error": {"message": "Rate limit reached. Please try again in 1s"}}', {}),
    "state 200": (200, b'{"error": {"message": "slow down, try again in 0.9 s", "code": 429}}', {}),
}


@pytest.mark.parametrize("refusal", PAUSES.values(), ids=PAUSES)
def test_a_repetition_waits_as_long_as_the_endpoint_asks_for(refusal):
    with judged(lambda number, asked: refusal if number == 1 else (200, reply("0.5"), {})) as (url, requests):
        since = time.monotonic()
        assert CompletionsEndpoint("the judge", "env.reward", url, 30.0, 2).asked(QUESTION) == (reply("0.5"), 2)
        assert time.monotonic() - since >= 0.9
        assert len(requests) == 2


def test_a_pause_beyond_the_limit_ends_the_request_and_is_named():
    with judged(lambda number, asked: (429, b"", {"Retry-After": "3600"})) as (url, requests):
        with pytest.raises(EndpointError, match=r"does not reply \(state 429, again in 3600 s\)"):
            CompletionsEndpoint("the judge", "env.reward", url, 1.0, 2).asked(QUESTION)
        assert len(requests) == 1
    with judged(lambda number, asked: (429, b"", {"Retry-After": "20"})) as (url, requests):
        assert "state 429, again in 20 s" in outcomes(url, ["x"], seconds=10.0, retries=2)[0]
        assert len(requests) == 1


QUESTION = {"messages": [{"role": "user", "content": "x"}]}
STATED = {
    "an error": ({"error": {"message": "too many", "code": 429}}, 3),
    "in the choice": ({"choices": [{"error": "too many", "finish_reason": "error"}]}, 3),
    "a status": ({"base_resp": {"status_code": 1002, "status_msg": "too many, rate limit"}, "choices": None}, 3),
    "a list": ([{"error": {"message": "too many", "status": "PERMISSION_DENIED"}}], 1),
    "no key": ({"error": {"message": "too many", "type": "invalid_api_key"}}, 1),
}


@pytest.mark.parametrize(("stated", "sent"), STATED.values(), ids=STATED)
def test_an_error_with_state_200_is_named_in_its_words_and_asked_again_where_that_may_help(stated, sent):
    body = json.dumps(stated).encode()
    with judged(lambda number, asked: (200, body, {})) as (url, requests):
        endpoint = CompletionsEndpoint("the judge", "env.reward", url, 30.0, 2)
        with pytest.raises(EndpointError, match=r"does not reply \('too many"):
            endpoint.asked(QUESTION)
        assert len(requests) == sent
    with judged(lambda number, asked: (200, body if number == 1 else reply("0.5"), {})) as (url, requests):
        endpoint = CompletionsEndpoint("the judge", "env.reward", url, 30.0, 2)
        if sent > 1:
            assert endpoint.asked(QUESTION) == (reply("0.5"), 2)


def test_a_number_may_arrive_in_parts():
    parts = [{"type": "thinking", "thinking": "3"}, {"type": "text", "text": "0."}, {"type": "text", "text": "5"}]
    assert number_in(reply(parts)) == 0.5


def test_a_redirection_is_not_followed():
    with judged(lambda number, asked: (200, reply("1"), {})) as (other, stolen):
        moved = {"Location": f"{other}/chat/completions"}
        with judged(lambda number, asked: (307, b"", moved)) as (url, _):
            assert "state 307" in outcomes(url, ["x"])[0]
    assert stolen == []


def test_nobody_there_and_silence_are_errors_within_the_limit():
    assert "does not reply" in outcomes("http://127.0.0.1:9/v1", ["x"], retries=0)[0]

    def silent(number, asked):
        time.sleep(5)
        return 200, reply("1"), {}

    with judged(silent) as (url, _):
        since = time.monotonic()
        assert outcomes(url, ["x"], seconds=0.5)[0].startswith(("timeout: no value in 0.5 s", "exception: JudgeError"))
        assert time.monotonic() - since < 30


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "Invalid JSON"),
        (b"<html>", "Invalid JSON"),
        (b"{}", "choices is not as it should be: Field required"),
        (b'{"choices": []}', "choices is not as it should be"),
        (b'{"choices": [{"message": {"content": null}}]}', "Input should be a valid string"),
        (reply("good"), "the judge replied 'good', not a number"),
        (reply("0.5 of 1"), "not a number"),
        (reply("nan"), "not a number"),
        (reply("1e3"), "not a number"),
        (reply(""), "not a number"),
        (reply("١"), "not a number"),
        (reply("9" * 31), "not a number"),
    ],
    ids=repr,
)
def test_a_reply_that_is_no_number_is_named(body, says):
    with pytest.raises(JudgeError, match="judge") as caught:
        number_in(body)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary() | st.text().map(reply))
def test_any_response_is_a_number_or_one_line(body):
    try:
        assert isinstance(number_in(body), float)
    except JudgeError as error:
        assert "\n" not in str(error)


@given(st.text(), st.dictionaries(st.text(), st.text() | st.integers()))
def test_an_answer_cannot_change_the_question(answer, row):
    assert question("a{answer}b{{{other}}}", answer, {**row, "other": "{answer}"}) == f"a{answer}b{{{{answer}}}}"


def test_a_reply_out_of_range_loses_its_episode_and_a_judge_stands_beside_a_function(tmp_path):
    with judged(lambda number, asked: (200, reply("9" if "bad" in asked else "4"), {})) as (url, _):
        judge = settings(url, prompt="{answer}", low=1.0, high=5.0, weight=0.5, name="style")
        with closing(made(written(tmp_path), [{"function": "support.row_functions:exact"}, judge])) as env:
            (task,) = env.sample(1, key("a"))
            fine, bad = env.try_step([task, task], [task.data["row"]["answer"], "bad"])
    assert fine.scores == (("exact", 1.0), ("style", 4.0))
    assert (fine.reward, fine.success, env.reward_range) == (3.0, False, (0.0, 3.5))
    assert str(bad) == "invalid: reward style: it returned 9, which is not between low=1 and high=5"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"prompt": "Rate it."}, "does not hold {answer}"),
        ({"prompt": "Rate {answer} {"}, "a brace stands alone"),
        ({"url": "http://user:word@h/v1"}, "may hold a secret"),
        ({"key": "sk-123"}, "not the name of an environment variable"),
        ({"low": 1.0, "high": 1.0}, "low=1 is not below high=1"),
    ],
)
def test_settings_that_cannot_be_are_refused(more, says):
    with pytest.raises(ValueError, match="validation error") as caught:
        configured("rows.jsonl", {**settings("http://h/v1"), **more})
    assert says in str(caught.value)


WRONG_WAYS = [
    ({"http_proxy": "socks5://u:secret@h:1"}, "http_proxy names a SOCKS proxy, which cannot be used here"),
    ({"HTTP_PROXY": "http://[::1", "http_proxy": ""}, None),
    ({"http_proxy": "http://[::1"}, "http_proxy is no address of a proxy"),
    ({"http_proxy": "::1"}, "http_proxy is no address of a proxy"),
    ({"no_proxy": "[::1"}, "no_proxy has '[::1', which is no host"),
    ({"NO_PROXY": "h:x"}, "NO_PROXY has 'h:x', which is no host"),
    ({"http_proxy": "http://[::1", "NO_PROXY": "judge.invalid", "no_proxy": "a.example"}, None),
    ({"http_proxy": "socks5://h:1", "NO_PROXY": "*.invalid"}, None),
    ({"all_proxy": "socks5://h:1"}, None),
    ({"https_proxy": "::1"}, None),
]


@pytest.mark.parametrize(("variables", "line"), WRONG_WAYS)
def test_a_proxy_on_the_way_to_a_judge_that_cannot_be_used_is_named_before_a_run(monkeypatch, variables, line):
    (callee,) = configured("rows.jsonl", settings("http://judge.invalid/v1")).reward
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            monkeypatch.setenv(spelling, "")
            monkeypatch.delenv(spelling)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if line is None:
        assert judge_key(callee) == ""
        return
    with pytest.raises(CoevoError, match=f"^{re.escape(line)}") as caught:
        judge_key(callee)
    assert "secret" not in f"{caught.value}"


def test_a_judge_without_its_key_or_its_column_is_refused_before_a_run(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    path = written(tmp_path)
    with pytest.raises(Exception, match="no API key in the variable that key of the judge names: set it"):
        made(path, settings("http://127.0.0.1:9/v1", prompt="{answer}", key="NO_SUCH_KEY"))
    with pytest.raises(ConfigError, match=r"prompt names \{facts\}=facts: .* has no such column"):
        made(path, settings("http://127.0.0.1:9/v1"))
