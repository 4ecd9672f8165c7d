import json

import pytest
import torch

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.vllm_server import ServerSettings, command, interpreter, sender_settings, settings
from coevo.utilities.errors import CoevoError


@pytest.fixture
def python(tmp_path):
    path = tmp_path / "python"
    path.touch()
    return str(path)


def line(python, rank=0, length=512, sleeps=False, gpus=None, **changes):
    config = VllmEngineConfig(type="vllm", python=python, **changes)
    serving = ServerSettings("model", rank, length, sleeps, gpus)
    words = command(config, serving)
    return dict(zip(words, [*words[1:], ""], strict=True)), settings(config, 0, "k", serving.on_gpus)


def test_the_working_directory_does_not_choose_the_default_interpreter(tmp_path, monkeypatch):
    mine = tmp_path / VllmEngineConfig(type="vllm").python
    mine.parent.mkdir(parents=True)
    mine.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coevo.models.engines.vllm.vllm_server.ROOT", tmp_path / "sources")
    with pytest.raises(CoevoError, match="no such interpreter"):
        interpreter(VllmEngineConfig(type="vllm"))
    assert interpreter(VllmEngineConfig(type="vllm", python=str(mine))) == mine


def test_on_a_cluster_a_server_has_the_gpus_of_its_place_and_the_interpreter_of_its_node(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    options, environment = line("/nowhere/python", gpus=2)
    assert options["--tensor-parallel-size"] == "2"
    assert "--enforce-eager" not in options
    assert "CUDA_VISIBLE_DEVICES" not in environment
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert "--enforce-eager" in line("/nowhere/python", gpus=0)[0]


def test_on_a_cpu_a_prompt_is_never_cut(python, monkeypatch):
    """vLLM 0.32 rolls the seed of a part of a prompt back, which its generators on a CPU cannot: the engine dies."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    options, environment = line(python, length=100_000)
    assert "--no-enable-chunked-prefill" in options
    assert int(options["--max-num-batched-tokens"]) >= 100_000
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_a_server_logs_its_queues_more_often_than_a_batch_takes(python):
    assert line(python)[1]["VLLM_LOG_STATS_INTERVAL"] == "2"


def test_each_server_has_its_gpus(python, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    options, environment = line(python, replicas=2, devices=("0,1", "2,3"), gpu_memory_utilization=0.5)
    assert (options["--tensor-parallel-size"], options["--gpu-memory-utilization"]) == ("2", "0.5")
    assert environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert "--enforce-eager" not in options
    assert "CUDA_VISIBLE_DEVICES" not in line(python)[1]


def test_only_servers_on_gpus_that_are_shared_are_started_for_sleep(python, monkeypatch):
    """A CPU's refuses the option, and answers to sleep all the same."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert "--enable-sleep-mode" in line(python, sleeps=True)[0]
    assert "--enable-sleep-mode" not in line(python)[0]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "--enable-sleep-mode" not in line(python, sleeps=True)[0]


def test_adapters_and_our_extension_are_asked_for_where_they_are_used(python):
    options, free = line(python, rank=20)[0], line(python, draws="free")[0]
    assert options["--max-lora-rank"] == "32"
    assert "--enable-lora" not in free
    assert options["coevo_vllm.Seeds"] == "--middleware"  # of the key, which is asked for first
    assert "coevo_vllm.Seeds" not in free


def test_every_server_asks_for_a_key_that_no_argument_holds(python):
    for draws in ("keyed", "free"):
        options, environment = line(python, draws=draws)
        assert options["--middleware"] == "coevo_vllm.KeyGuard"
        assert environment["VLLM_API_KEY"] == "k"
        assert "k" not in options


def test_a_server_whose_weights_are_sent_is_started_for_it(python):
    assert "--weight-transfer-config" not in line(python)[0]
    options, environment = line(python, sync="gloo")
    assert json.loads(options["--weight-transfer-config"]) == {"backend": "gloo"}
    assert "VLLM_ALLOW_INSECURE_SERIALIZATION" not in environment
    assert line(python, sync="ipc")[1]["VLLM_ALLOW_INSECURE_SERIALIZATION"] == "1"


def test_a_sender_has_the_gpu_of_its_server_or_one_that_is_left(python, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def gpu(**changes):
        config = VllmEngineConfig(type="vllm", python=python, **changes)
        return sender_settings(config, replica=len(config.devices) - 1, key="k").get("CUDA_VISIBLE_DEVICES")

    assert gpu(sync="ipc", replicas=2, devices=("0", "1")) == "1"
    assert gpu(sync="nccl", replicas=2, devices=("0", "1")) == "2"
    assert gpu(sync="nccl", urls=("http://a:1",)) == "2"
    assert gpu(sync="gloo") is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    assert gpu(sync="nccl", replicas=2, devices=("4", "6")) == "5"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for taken in ((), ("0,1,2",), ("GPU-8932f937",)):
        with pytest.raises(CoevoError, match="leave one, or choose ipc, gloo or files"):
            gpu(sync="nccl", devices=taken)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CoevoError, match="there is none here: set gloo or files"):
        gpu(sync="ipc")
