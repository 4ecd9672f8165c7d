"""Weights that a process of its own sends: over Gloo to real vLLM, and its faults with a small program in its place."""

import socket
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from support.families import command_of, kill_all
from support.policies import requests

from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.vllm.sender import Sender
from coevo.models.engines.vllm.server_client import Client, UnreachableError
from coevo.models.engines.vllm.vllm_engine import VllmEngine

ASKED = requests(groups=4, members=6)
SAMPLING = SamplingConfig(temperature=0.7, max_new_tokens=8)
SENDER = """
import json, os, sys, time
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
print("a library's own words")
for line in sys.stdin:
    directory = json.loads(line)["directory"]
    if "bad" in directory:
        raise ValueError("no such tensors")
    if "slow" in directory:
        time.sleep(60)
    print(directory, file=replies, flush=True)
"""


@pytest.fixture
def client(address):
    return Client(address, 5.0)


@pytest.fixture
def address():
    """A port that takes connections; nobody answers there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def sender(tmp_path):
    """A sender with a small program in its place."""
    command = [sys.executable, "-c", SENDER]
    with closing(Sender(command, {}, tmp_path / "sender.log", timeout=20.0)) as made:
        yield made


def test_every_delivery_is_confirmed_by_one_process(sender, client):
    sender.deliver(client, Path("one"))
    first = sender._process.pid
    sender.deliver(client, Path("two"))
    assert sender._process.pid == first
    sender.close()
    assert not psutil.pid_exists(first)


@pytest.mark.parametrize(("directory", "reason"), [("bad", "ValueError: no such tensors"), ("slow", "no answer in")])
def test_a_failed_delivery_is_one_line_and_the_next_one_has_a_new_process(sender, client, directory, reason, tmp_path):
    with pytest.raises(UnreachableError, match=reason) as raised:
        sender.deliver(client, Path(directory))
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "sender.log") in str(raised.value)
    assert not [child for child in psutil.Process().children() if SENDER in command_of(child)]
    sender.deliver(client, Path("good"))


def test_a_sender_that_was_killed_between_two_deliveries_is_replaced(sender, client):
    sender.deliver(client, Path("one"))
    psutil.Process(sender._process.pid).kill()
    sender._process.status()
    sender.deliver(client, Path("two"))


def test_a_sender_that_a_server_has_forgotten_is_replaced_once(sender, client, tmp_path):
    sender.deliver(client, Path("one"))
    first = sender._process.pid
    with pytest.raises(UnreachableError, match="ValueError: no such tensors"):
        sender.deliver(client, Path("bad"))
    assert (tmp_path / "sender.log").read_text().count("ValueError: no such tensors") == 2
    assert not psutil.pid_exists(first)


def test_a_server_that_is_gone_is_one_line(sender):
    with pytest.raises(
        UnreachableError, match=r"were not sent to the vLLM server at http://127\.0\.0\.1:9 \(.*\); see"
    ):
        sender.deliver(Client("http://127.0.0.1:9", 1.0), Path("one"))


@pytest.fixture(scope="module")
def sending(policies, tmp_path_factory):
    """An engine at ``a`` whose server takes weights over Gloo."""
    config = VllmEngineConfig(type="vllm", sync="gloo")
    with closing(VllmEngine(policies / "a", config, SAMPLING, tmp_path_factory.mktemp("gloo"))) as made:
        yield made


def paths(monkeypatch):
    """Paths and methods that servers are asked for from now on."""
    asked, post = [], Client.post
    monkeypatch.setattr(
        Client, "post", lambda self, path, body: asked.append(body.get("method", path)) or post(self, path, body)
    )
    return asked


def tokens(completions):
    return [completion.token_ids for completion in completions]


@pytest.mark.full
@pytest.mark.timeout(1800)
class TestVllm:
    """Real vLLM."""

    @pytest.mark.soak
    def test_weights_arrive_without_a_file_and_digests_prove_it(self, sending, engine, policies, monkeypatch):
        asked = paths(monkeypatch)
        for name in ("b", "a", "b"):
            sending.load(policies / name)
            engine.load(policies / name)
            assert tokens(sending.generate(ASKED)) == tokens(engine.generate(ASKED))
        assert asked.count("reload_weights") == 3  # those of the other engine
        assert asked.count("coevo_digests") >= 6

    @pytest.mark.soak
    def test_a_server_by_url_needs_no_file_of_the_run(self, sending, engine, policies, tmp_path, monkeypatch):
        monkeypatch.setenv("COEVO_VLLM_API_KEY", sending.key)
        config = VllmEngineConfig(type="vllm", urls=(sending.replicas[0].url,), sync="gloo")
        asked = paths(monkeypatch)
        with closing(VllmEngine(policies / "a", config, SAMPLING, tmp_path)) as other:
            assert tokens(other.generate(ASKED)) == tokens(engine.generate(ASKED))
            found = other.load(policies / "b")
            engine.load(policies / "b")
            assert tokens(other.generate(ASKED)) == tokens(engine.generate(ASKED))
        assert found["change"] > 10 * found["noise"]
        assert asked.count("reload_weights") == 1

    @pytest.mark.soak
    def test_a_sender_and_a_server_that_are_killed_are_replaced(self, sending, engine, policies):
        (replica,) = sending.replicas
        psutil.Process(replica._delivery._process.pid).kill()
        sending.load(policies / "a")
        kill_all(psutil.Process(replica.server.pid).children(recursive=True))
        sending.load(policies / "b")
        engine.load(policies / "b")
        assert tokens(sending.generate(ASKED)) == tokens(engine.generate(ASKED))
