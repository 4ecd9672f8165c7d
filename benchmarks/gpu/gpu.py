"""Measurements on a GPU, in under ten minutes: updates of 16k packed tokens, and one iteration with vLLM.

Weights are random and nothing is downloaded. What was measured is kept, what was skipped is said with the reason.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.bench import ROOT, Bench, Result
from benchmarks.command import reach
from benchmarks.gpu.cases import CASES, build_policy
from benchmarks.gpu.updates import measure, used
from coevo.configs.policy import LoraConfig
from coevo.configs.rollout.engine import VllmEngineConfig
from coevo.configs.rollout.rollout import SamplingConfig
from coevo.flows.history.cost import stages
from coevo.models.capacity.devices import here
from coevo.models.engines.base import Request
from coevo.models.engines.vllm.engine import VllmEngine
from coevo.records.draws import key

MINUTES = 9
"""Nothing is begun that would end later, as far as ``EXPECTED`` knows."""
VLLM = Path(".venv-vllm/bin/python")

SLEEPERS = {"sleep-vllm-full": None, "sleep-vllm-lora": LoraConfig(r=64, alpha=64)}
"""Servers that make room, by the adapters that they serve."""
SLEEP = 120.0
"""Seconds that one may take, its start included."""
ITERATION = 200.0
"""Seconds that the iteration with vLLM may take."""


def run(bench: Bench) -> None:
    """Measure what is missing and print it; one line where there is no GPU."""
    if not torch.cuda.is_available():
        print("gpu: this machine has no GPU; nothing was measured")
        return
    started, skipped = time.monotonic(), list[str]()
    print(f"\n{here()}")
    for name, case in CASES.items():
        measured = lambda case=case: measure(case, "cuda", bench.workspace.root / "gpu")  # noqa: E731
        _part(bench, name, case.expected, measured, started, skipped)
    if (ROOT / VLLM).is_file():
        for name, lora in SLEEPERS.items():
            _part(bench, name, SLEEP, lambda lora=lora: nap(bench, lora), started, skipped)  # type: ignore[misc]
        _part(bench, "iteration-vllm", ITERATION, lambda: iterate(bench), started, skipped)
    else:
        skipped.append(f"rollout, sync and iteration with vLLM: {VLLM} is not here, see make vllm-gpu")
    for reason in skipped:
        print(f"skipped {reason}")


def iterate(bench: Bench) -> Result:
    """Seconds of every stage of one iteration of GRPO: vLLM and DeepSpeed take turns on the GPU."""
    place = bench.workspace.root / "policy"
    case = CASES["update-0.6b-full"]
    build_policy(case, torch.bfloat16, "cuda", place)
    history = reach(bench.workspace, "gpu", "homerules-grpo", 1, settings(place))
    return {"stages": stages(history[-1]), "metrics": _figures(history[-1].rates)}


def nap(bench: Bench, lora: LoraConfig | None) -> Result:
    """A server that sleeps and wakes: memory in use on the GPU, and seconds; each load checks the weights."""
    place = bench.workspace.root / "sleep"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    build_policy(replace(CASES["update-0.6b-full"], lora=lora), torch.bfloat16, "cuda", place / "policy")
    config = VllmEngineConfig(
        type="vllm", dtype="bfloat16", devices=("0",), gpu_memory_utilization=0.4, max_model_len=1024
    )
    sampling = SamplingConfig(temperature=1.0, max_new_tokens=16)
    with closing(VllmEngine(place / "policy", config, sampling, place / "engine", sleeps=True)) as engine:
        return {f"level {level}": _asleep(engine, place / "policy", level) for level in (1, 2)}


def _asleep(engine: VllmEngine, policy: Path, level: int) -> Result:
    asked = [Request(tuple(range(10, 40)), key("nap", row), "nap") for row in range(8)]
    before, awake, since = engine.generate(asked), used(), time.perf_counter()
    engine.sleep(level)
    slept, asleep = time.perf_counter(), used()
    engine.load(policy)
    woken = time.perf_counter()
    return {
        "awake_gib": awake / 2**30,
        "asleep_gib": asleep / 2**30,
        "sleep_seconds": slept - since,
        "wake_seconds": woken - slept,
        "same_tokens": [it.token_ids for it in before] == [it.token_ids for it in engine.generate(asked)],
    }


def settings(policy: Path) -> list[str]:
    """Overrides that move the iteration to a GPU."""
    return [
        "policy.type=pretrained", f"policy.path={policy}", "policy.dtype=bfloat16", "warmstart=null",
        "rollout.engine.type=vllm", "rollout.engine.dtype=bfloat16", "rollout.engine.devices=['0']",
        "rollout.engine.gpu_memory_utilization=0.4", "rollout.engine.max_model_len=1024",
        "rollout.sampling.max_new_tokens=64", "update.deepspeed.device=cuda", "placement.type=shared",
        "evaluation.tasks=32", "evaluation.final_panels=[]",
    ]  # fmt: skip


def _part(
    bench: Bench, name: str, expected: float, measured: Callable[[], Result], started: float, skipped: list[str]
) -> None:
    """Measure one part where it is missing and there is time for it, and print it."""
    there = (bench.cells / f"{name}.json").is_file()
    left = 60 * MINUTES - (time.monotonic() - started)
    if not there and expected > left:
        skipped.append(f"{name}: {left:.0f} s are left, and it may take {expected:.0f}; start the benchmark again")
        return
    for what, value in bench.cell(name, measured).items():
        print(f"  {name:20} {what:18} {value}")


def _figures(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if "second" in name}
