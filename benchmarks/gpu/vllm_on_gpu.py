"""A vLLM server on a GPU: what it frees when it sleeps, and how quickly it gets other weights."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from benchmarks.bench import Bench, BenchResult
from benchmarks.gpu.cases import CASES, build_policy
from benchmarks.gpu.updates import used
from coevo.configs.policy_config import LoraConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.records.draws import key

Sync = Literal["files", "ipc"]
"""Ways of new weights to a server that one GPU allows: ``nccl`` sends from a second one."""

SAMPLING = SamplingConfig(temperature=1.0, max_new_tokens=16)
ASKED = [Request(tuple(range(10, 40)), key("servers", row), "servers") for row in range(8)]
LOADS = 3
"""Loads of a measurement, the first of which also starts the sender."""


def nap(bench: Bench, lora: LoraConfig | None) -> BenchResult:
    """A server that sleeps and wakes: memory in use on the GPU, and seconds; each load checks the weights."""
    path = _empty(bench, "sleep")
    policy = _policy(path / "policy", lora, seed=0)
    with closing(VllmEngine(policy, _server("files"), SAMPLING, path / "engine", sleeps=True)) as engine:
        return {f"level {level}": _asleep(engine, policy, level) for level in (1, 2)}


def load(bench: Bench, sync: Sync) -> BenchResult:
    """A server that gets other weights: seconds of each load, which checks the digest of every tensor."""
    path = _empty(bench, f"load-{sync}")
    policies = [_policy(path / str(seed) / "policy", None, seed) for seed in range(2)]
    with closing(VllmEngine(policies[0], _server(sync), SAMPLING, path / "engine")) as engine:
        first = _drawn(engine)
        loads = [_seconds(partial(engine.load, policies[1 - number % 2])) for number in range(LOADS)]
        other = _drawn(engine)
        engine.load(policies[0])
        return {"load_seconds": loads, "other_tokens": other != first, "same_tokens": _drawn(engine) == first}


def _asleep(engine: VllmEngine, policy: Path, level: int) -> BenchResult:
    before, awake = _drawn(engine), used()
    sleep = _seconds(partial(engine.sleep, level))
    asleep = used()
    wake = _seconds(partial(engine.load, policy))
    return {
        "awake_gib": awake / 2**30,
        "asleep_gib": asleep / 2**30,
        "sleep_seconds": sleep,
        "wake_seconds": wake,
        "same_tokens": before == _drawn(engine),
    }


def _server(sync: Sync) -> VllmEngineConfig:
    return VllmEngineConfig(
        type="vllm", dtype="bfloat16", devices=("0",), gpu_memory_utilization=0.4, max_model_len=1024, sync=sync
    )


def _policy(directory: Path, lora: LoraConfig | None, seed: int) -> Path:
    """Directory of a policy of 0.6B random weights, in which none of the GPU's memory is left to this process."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    build_policy(replace(CASES["update-0.6b-full"], lora=lora), torch.bfloat16, "cuda", directory, seed)
    torch.cuda.empty_cache()
    return directory


def _empty(bench: Bench, name: str) -> Path:
    path = bench.workspace.root / name
    shutil.rmtree(path, ignore_errors=True)
    return path


def _drawn(engine: VllmEngine) -> list[Sequence[int]]:
    return [completion.token_ids for completion in engine.generate(ASKED)]


def _seconds(act: Callable[[], object]) -> float:
    since = time.perf_counter()
    act()
    return time.perf_counter() - since
