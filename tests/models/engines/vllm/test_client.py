"""Faults that a real vLLM server does not have on demand, from a tiny server on the loopback."""

import http.server
import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from support.weights import known

from coevo.configs.errors import CoevoError
from coevo.configs.rollout.engine import VllmEngineConfig
from coevo.models.engines.vllm.check import Probe
from coevo.models.engines.vllm.client import Client, MissingError, RefusedError, UnreachableError
from coevo.models.engines.vllm.engine import _key
from coevo.models.engines.vllm.replica import Replica


class Asked(list):
    """Paths of requests, and the key that each had."""

    def __init__(self):
        super().__init__()
        self.keys = []


@contextmanager
def serving(*answers):
    """The URL of a server that gives these answers (status, body), one after another, and what it was asked."""
    asked, left = Asked(), list(answers)
    keys = asked.keys

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            keys.append(self.headers.get("Authorization"))
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = left.pop(0)
            if status is None:
                return  # hangs up
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", body)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing on the console."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FAULTS = {
    "broken engine": ((500, '{"error": {"message": "EngineCore is dead"}}'), UnreachableError, "500 (EngineCore is de"),
    "bad request": ((400, '{"error": {"message": "too\\nlong"}}'), RefusedError, "refuses /x (400: too long)"),
    "unknown path": ((404, '{"detail": "Not Found"}'), MissingError, "refuses /x (404"),
    "no JSON": ((422, "<html>"), RefusedError, "(422: <html>)"),
    "half an answer": ((200, '{"choices": ['), UnreachableError, "does not answer"),
    "hung up": ((None, ""), UnreachableError, "does not answer"),
}


@pytest.mark.parametrize(("answer", "kind", "said"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_one_line(answer, kind, said):
    with serving(answer) as (url, _), pytest.raises(kind) as raised:
        Client(url, timeout=5).post("/x", {})
    assert said in str(raised.value)
    assert url in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_key_goes_to_its_server_and_no_further():
    with serving((200, "{}")) as (other, stolen), serving((200, "{}"), (302, f"{other}/x")) as (url, asked):
        client = Client(url, 5, "secret")
        client.post("/x", {})
        with pytest.raises(RefusedError, match="302"):
            client.post("/x", {})
    assert asked.keys == ["Bearer secret"] * 2
    assert stolen == []


def test_a_server_that_wants_a_key_is_one_line_that_says_where_it_belongs(tmp_path, monkeypatch):
    with serving((401, '{"error": "Unauthorized"}')) as (url, _), pytest.raises(RefusedError) as raised:
        Client(url, 5).post("/collective_rpc", {})
    assert str(raised.value).endswith("set COEVO_VLLM_API_KEY to its key")
    monkeypatch.setenv("COEVO_VLLM_API_KEY", "one\ntwo")
    with pytest.raises(CoevoError, match="COEVO_VLLM_API_KEY is not an API key") as raised:
        _key(VllmEngineConfig(type="vllm", urls=(url,)))
    assert "one" not in str(raised.value)


def test_nobody_there_and_nobody_who_answers(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not for servers
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
        with pytest.raises(UnreachableError, match="refused"):
            client.post("/x", {})
        silent.listen()
        since = time.monotonic()
        with pytest.raises(UnreachableError, match="timed out"):
            client.post("/x", {})
        assert time.monotonic() - since < 5
        assert not client.is_ready()


PROBE = Probe(prompt=(3, 4), logprobs=(-1.0,), temperature=0.7, following=(-0.1, -2.5))
OFF = {
    "another prompt's": (-1.5, 1, -2.5),
    "another temperature's": (-1.0, 1, -3.75),
    "none at all": (-1.0, 0, float("nan")),
}


def replica(url, tmp_path):
    weights = known(tmp_path, "", PROBE)
    made = Replica(VllmEngineConfig(type="vllm", urls=(url,), restarts=0), weights, None, url)
    made._is_new = False  # what it has is not the question here
    return made


def test_fewer_answers_than_prompts_are_no_answer(tmp_path):
    choice = '{"index": 0, "token_ids": [1], "logprobs": {"token_logprobs": [-1.0]}}'
    refused = pytest.raises(CoevoError, match=r"answered 1 of 2.*coevo resume")
    with serving((200, f'{{"choices": [{choice}]}}')) as (url, _), refused:
        replica(url, tmp_path).complete({"prompt": [[3], [4]], "seeds": [1, 2]})


def test_a_server_without_our_extension_is_told_what_it_lacks(tmp_path):
    refused = pytest.raises(CoevoError, match=r"docs/engines\.md.*draws=free")
    with serving((404, '{"detail": "Not Found"}')) as (url, asked), refused:
        replica(url, tmp_path).complete({"prompt": [[3]], "seeds": [1]})
    assert asked == ["/coevo/completions"]


def test_a_cache_that_stays_is_an_error(tmp_path):
    with serving((200, '{"success": false}')) as (url, _), pytest.raises(CoevoError, match="keeps its cache"):
        replica(url, tmp_path).forget()


@pytest.mark.parametrize(("before", "token", "after"), OFF.values(), ids=OFF)
def test_wrong_weights_are_never_used(before, token, after, tmp_path):
    said = {"prompt_logprobs": [None, {"4": {"logprob": before}}], "token_ids": [token], "index": 0}
    logprobs = json.dumps({"choices": [said | {"logprobs": {"token_logprobs": [after]}}]})
    reload, noted, reset = (200, '{"results": [null]}'), (200, "{}"), (200, '{"success": true}')
    with serving(reload, noted, reset, (200, logprobs)) as (url, asked):
        made = Replica(VllmEngineConfig(type="vllm"), known(tmp_path, "", PROBE), None, url)
        with pytest.raises(CoevoError, match="does not have the policy's weights: its log-probs are off by"):
            made.complete({"prompt": [[3]], "seeds": [1]})
    assert asked == ["/collective_rpc", "/coevo/weights", "/reset_prefix_cache", "/v1/completions"]
