"""Measurements on a GPU, in under ten minutes: updates of 16k packed tokens, vLLM servers, and one iteration.

Weights are random and nothing is downloaded. What was measured is kept, what was skipped is said with the reason.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import reach
from benchmarks.gpu.cases import CASES, build_policy
from benchmarks.gpu.updates import measure
from benchmarks.gpu.vllm_on_gpu import load, nap
from coevo.configs.policy_config import LoraConfig
from coevo.models.capacity.devices import here
from coevo.tasks.cost import stages

MINUTES = 9
"""No part is begun that is expected to end later."""
VLLM = Path(".venv-vllm/bin/python")

SERVERS: dict[str, Callable[[Bench], BenchResult]] = {
    "load-vllm-files": lambda bench: load(bench, "files"),
    "load-vllm-ipc": lambda bench: load(bench, "ipc"),
    "sleep-vllm-full": lambda bench: nap(bench, None),
    "sleep-vllm-lora": lambda bench: nap(bench, LoraConfig(r=64, alpha=64)),
}
SERVER = 120.0
"""Seconds that one of these may take, the start of its server included."""
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
        directory = bench.workspace.root / "gpu"
        _part(bench, name, case.expected, partial(measure, case, "cuda", directory), started, skipped)
    if (ROOT / VLLM).is_file():
        for name, measured in SERVERS.items():
            _part(bench, name, SERVER, partial(measured, bench), started, skipped)
        _part(bench, "iteration-vllm", ITERATION, lambda: iterate(bench), started, skipped)
    else:
        skipped.append(f"rollout, sync and iteration with vLLM: {VLLM} is not here, see make vllm-gpu")
    for reason in skipped:
        print(f"skipped {reason}")


def iterate(bench: Bench) -> BenchResult:
    """Seconds of every stage of one iteration of GRPO: vLLM and DeepSpeed take turns on the GPU."""
    directory = bench.workspace.root / "policy"
    case = CASES["update-0.6b-full"]
    build_policy(case, torch.bfloat16, "cuda", directory)
    history = reach(bench.workspace, "gpu", "homerules-grpo", 1, settings(directory))
    return {"stages": stages(history[-1]), "metrics": _figures(history[-1].rates)}


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
    bench: Bench, name: str, expected: float, measured: Callable[[], BenchResult], started: float, skipped: list[str]
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
