"""Faults that a real vLLM server does not have on demand, from a tiny server on the loopback."""

import socket
import time
from contextlib import contextmanager
from itertools import count

import pytest
from support.completions import HANGS_UP, Answer, completions, refused
from support.weights import known

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm import replica as module
from coevo.models.engines.vllm.replica import Replica
from coevo.models.engines.vllm.server_check import ServerProbe
from coevo.models.engines.vllm.server_client import Client, MissingError, ServerRefusedError, UnreachableError
from coevo.models.engines.vllm.vllm_engine import _key
from coevo.utilities.errors import CoevoError


@contextmanager
def serving(*answers):
    """The URL of a server that gives these answers, one after another, and its requests."""
    left = list(answers)
    with completions(lambda _: left.pop(0)) as (url, asked):
        yield url.removesuffix("/v1"), asked


def paths(asked):
    return [request.path for request in asked]


FAULTS = {
    "broken engine": (refused("EngineCore is dead", 500), UnreachableError, "500 (EngineCore is de"),
    "bad request": (refused("too\nlong", 400), ServerRefusedError, "refuses /x (400: too long)"),
    "unknown path": (Answer({"detail": "Not Found"}, 404), MissingError, "refuses /x (404"),
    "no JSON": (Answer(b"<html>", 422), ServerRefusedError, "(422: <html>)"),
    "half an answer": (Answer(b'{"choices": ['), UnreachableError, "does not answer"),
    "hung up": (HANGS_UP, UnreachableError, "does not answer"),
}


@pytest.mark.parametrize(("answer", "kind", "said"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_one_line(answer, kind, said):
    with serving(answer) as (url, _), pytest.raises(kind) as raised:
        Client(url, timeout=5).post("/x", {})
    assert said in str(raised.value)
    assert url in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_key_goes_to_its_server_and_no_further():
    with (
        serving(Answer({})) as (other, stolen),
        serving(Answer({}), Answer(b"", 302, {"Location": f"{other}/x"})) as (url, asked),
    ):
        client = Client(url, 5, "secret")
        client.post("/x", {})
        with pytest.raises(ServerRefusedError, match="302"):
            client.post("/x", {})
    assert [request.headers["authorization"] for request in asked] == ["Bearer secret"] * 2
    assert stolen == []


def test_a_server_that_wants_a_key_is_one_line_that_says_where_it_belongs(tmp_path, monkeypatch):
    with serving(Answer({"error": "Unauthorized"}, 401)) as (url, _), pytest.raises(ServerRefusedError) as raised:
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
        assert time.monotonic() - since < 30
        assert not client.is_ready()


PROBE = ServerProbe(prompt=(3, 4), logprobs=(-1.0,), temperature=0.7, following=(-0.1, -2.5))
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
    choice = {"index": 0, "token_ids": [1], "logprobs": {"token_logprobs": [-1.0]}}
    stopped = pytest.raises(CoevoError, match=r"answered 1 of 2.*coevo resume")
    with serving(Answer({"choices": [choice]})) as (url, _), stopped:
        replica(url, tmp_path).complete({"prompt": [[3], [4]], "seeds": [1, 2]})


def test_a_server_without_our_extension_is_told_what_it_lacks(tmp_path):
    stopped = pytest.raises(CoevoError, match=r"docs/engines\.md.*draws=free")
    with serving(Answer({"detail": "Not Found"}, 404)) as (url, asked), stopped:
        replica(url, tmp_path).complete({"prompt": [[3]], "seeds": [1]})
    assert paths(asked) == ["/coevo/completions"]


def test_a_cache_that_another_process_uses_is_emptied_later(tmp_path):
    with serving(*[Answer({"success": done}) for done in (False, False, True)]) as (url, asked):
        replica(url, tmp_path).forget()
    assert len(asked) == 3


def test_a_cache_that_stays_in_use_for_the_timeout_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "monotonic", count(step=200).__next__)
    held = [Answer({"success": False})] * 2
    with serving(*held) as (url, asked), pytest.raises(CoevoError, match="keeps its cache"):
        replica(url, tmp_path).forget()
    assert len(asked) == 2


@pytest.mark.parametrize(("before", "token", "after"), OFF.values(), ids=OFF)
def test_wrong_weights_are_never_used(before, token, after, tmp_path):
    said = {"prompt_logprobs": [None, {"4": {"logprob": before}}], "token_ids": [token], "index": 0}
    probed = Answer({"choices": [said | {"logprobs": {"token_logprobs": [after]}}]})
    with serving(Answer({"results": [None]}), Answer({}), Answer({"success": True}), probed) as (url, asked):
        made = Replica(VllmEngineConfig(type="vllm"), known(tmp_path, "", PROBE), None, url)
        with pytest.raises(CoevoError, match="does not have the policy's weights: its log-probs are off by"):
            made.complete({"prompt": [[3]], "seeds": [1]})
    assert paths(asked) == ["/collective_rpc", "/coevo/weights", "/reset_prefix_cache", "/v1/completions"]
