"""Updates on a GPU in a real trainer child, without vLLM, Prefect, MLflow and the stores.

On a machine that has torch, transformers, PEFT, DeepSpeed, pydantic, pyarrow and a checkout, without an installation:

    PYTHONPATH=. python -m benchmarks.gpu.updates RESULTS.json [CASE ...]
"""

import json
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch

from benchmarks.gpu.cases import CASES, Case, build_policy, write_batch
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.capacity.devices import here
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
from coevo.records.draws import key

UPDATES = 4
"""Updates of a measurement, the first of which only warms up."""
SAMPLED = 0.05
"""Seconds between two looks at the memory in use."""


def main(results: Path, cases: Sequence[str]) -> None:
    """Measure the cases that a file of JSON lacks, and add each as soon as it is known."""
    found = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    for name in [case for case in cases or CASES if case not in found]:
        with TemporaryDirectory() as directory:
            found[name] = measure(CASES[name], "cuda", Path(directory))
        results.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, found[name], flush=True)


def measure(case: Case, device: Literal["cpu", "cuda"], directory: Path) -> dict[str, Any]:
    """Tokens a second, share of the device's rate, and peak memory of updates in a real trainer child."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    policy, batch = directory / "policy", directory / "batch.parquet"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    parameters = build_policy(case, dtype, device, policy)
    write_batch(case, batch)
    with _watched(device) as peak, _trainer(case.update(device), policy, directory / "log") as trainer:
        reports = [trainer.update(batch, key("gpu", number)).metrics for number in range(UPDATES)]
    rates = [report["tokens_per_second"] for report in reports[1:]]
    rate, machine = median(rates), here()
    flops = machine.gpus[0].flops if device == "cuda" else machine.host.flops
    shutil.rmtree(directory)
    return {
        "parameters": parameters,
        "tokens": case.tokens,
        "tokens_per_second": rate,
        "target": case.target,
        "mfu": case.passes * parameters * rate / flops,
        "peak_gib": peak[0] / 2**30,
        "forecast_gib": case.forecast() / 2**30,
        "device": str(machine),
    }


def used() -> int:
    """Bytes in use on the GPU, by whomever."""
    free, there = torch.cuda.mem_get_info()
    return int(there - free)


def _trainer(config: UpdateConfig, policy: Path, log: Path) -> Trainer:
    return Trainer(config, StartingPoint(policy, policy), temperature=1.0, threads=1, log=log)


@contextmanager
def _watched(device: str) -> Iterator[list[int]]:
    """Most bytes that come into use on the GPU while the block runs; 0 on a CPU."""
    peak, over = [0], threading.Event()
    if device == "cuda":
        torch.cuda.empty_cache()  # of the policy that was built here
    before = used() if device == "cuda" else 0

    def watch() -> None:
        while not over.wait(SAMPLED):
            peak[0] = max(peak[0], used() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    if device == "cuda":
        watcher.start()
    try:
        yield peak
    finally:
        over.set()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
