"""Host memory of runs at the shape of Qwen3-0.6B beside that of their dry runs: adapters, random weights, few tokens.

The dry run's share for the trainer's heap was measured on the first run. The second one, with two trainer processes and
activation checkpointing, was not used for it.

A run generates and trains on the CPU of this machine. Memory is the largest sum of
proportional set sizes, in which pages that processes share count once. Random weights earn nothing, so each turn costs
a penalty: otherwise the update would have nothing to learn, and would take no memory. Without a bank, prompts are as
long as the dry run says.
"""

import json
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
import yaml
from transformers import Qwen3Config, Qwen3ForCausalLM

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND, coevo
from benchmarks.speed.rendering import qwen
from coevo.lineage.workspace import Workspace
from coevo.models.capacity.devices import GIB
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.utilities.errors import CoevoError

TARGET = 0.2
SAMPLE_SECONDS = 0.5
RECIPE = {
    "defaults": ["envs/homerules", "models/qwen3-0.6b", "methods/reinforce"],
    "iterations": 1,
    "rollout": {
        "tasks": 4,
        "group_size": 4,
        "max_turns": 4,
        "sampling": {"max_new_tokens": 8},
        "engine": {"type": "transformers", "threads": 2, "rows": 16},
    },
    "evaluation": {"panels": ["seen-houses"], "tasks": 2},
}
UPDATE = {"invalid_penalty": 0.1, "advantage": {"type": "reinforce", "baseline": "none"}}
TRAINER = {"tokens": 1024, "timeout": 3600.0}
CASES: dict[str, dict[str, Any]] = {"lora": {}, "checkpointed": {"activation_checkpointing": True, "processes": 2}}
"""Settings of DeepSpeed that each run adds."""


def run(bench: Bench) -> None:
    """Measure what is missing, and print it."""
    for case in CASES:
        report(case, bench.cell(case, partial(measure, bench, case)))


def report(case: str, found: BenchResult) -> None:
    """Print both figures, and how far the dry run is off."""
    off = found["foreseen"] / found["measured"] - 1
    print(
        f"\na run at the shape of Qwen3-0.6B, {case}: {found['measured'] / GIB:.1f} GiB, by its dry run "
        f"{found['foreseen'] / GIB:.1f}, {off:+.0%} (target within {TARGET:.0%}); "
        f"{found['seconds']:.0f} s"
    )


def measure(bench: Bench, case: str) -> BenchResult:
    """Run a case once.

    Raises:
        CoevoError: the run failed.
    """
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    _random_policy(directory / "model")
    recipe = directory / "host-memory.yaml"
    policy = {"path": str(directory / "model"), "lora": {"r": 16, "alpha": 32}}
    update = UPDATE | {"deepspeed": TRAINER | CASES[case]}
    recipe.write_text(yaml.safe_dump(RECIPE | {"policy": policy, "update": update}), encoding="utf-8")
    # The dry run finds episodes of two turns too short to try every action, which is no matter here.
    line = [*COMMAND, "run", str(recipe), "--dry-run", "--json"]
    said = json.loads(subprocess.run(line, cwd=ROOT, check=False, capture_output=True, text=True).stdout)
    (host,) = (each for each in said["memory"] if each["where"] == "the machine's memory")
    since = time.monotonic()
    measured = _largest("run", str(recipe), "--workspace", str(directory / "workspace"))
    seconds = time.monotonic() - since
    coevo(Workspace(directory / "workspace"), "down")
    held = {"measured": sum(measured.values()), "processes": measured}
    return held | {"foreseen": int(host["gib"] * GIB), "parts": host["parts"], "seconds": seconds}


def _random_policy(directory: Path) -> None:
    tokenizer = qwen()
    sizes = {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 40960}
    ends = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": None, "pad_token_id": 0}
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=151936, tie_word_embeddings=True, **sizes, **heads, **ends))
    save(Policy(model.eval().bfloat16(), tokenizer), directory)  # as it is published; the run computes in float32


def _largest(*arguments: str) -> dict[str, int]:
    """Bytes of the processes of a command by what they run, when their sum is largest."""
    process, most = psutil.Popen([*COMMAND, *arguments], cwd=ROOT), dict[str, int]()
    while process.poll() is None:
        most = max(most, _held(process), key=lambda held: sum(held.values()))
        time.sleep(SAMPLE_SECONDS)
    if process.returncode != 0:
        raise CoevoError(f"`coevo {arguments[0]}` ended with exit code {process.returncode}: mend what it says above")
    return most


def _held(process: psutil.Process) -> dict[str, int]:
    held = dict[str, int]()
    try:
        for each in (process, *process.children(recursive=True)):
            name = next((part for part in each.cmdline() if part.startswith("coevo.")), each.name())
            held[name] = held.get(name, 0) + int(each.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return held
    return held
