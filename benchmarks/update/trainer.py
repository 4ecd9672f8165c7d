"""The trainer over several processes: seconds until it is ready, and of an update beside that of one process.

Both take turns on the same samples in one run, so that what else the machine does meets both. Processor seconds of the
busiest process say how evenly the work is shared, and nothing of the time that processes wait for each other.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bench import Bench, BenchResult
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.update.update_config import DeepSpeedConfig, UpdateConfig
from coevo.models.policy import policy as policies
from coevo.models.trainer.samples import SAMPLES
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
from coevo.records.draws import generator, key

MODEL = ScratchPolicyConfig(hidden_size=256, layers=4, heads=8, kv_heads=8, head_dim=32, intermediate_size=1024)
WORDS = tuple(f"word{number}" for number in range(500))
GROUPS, EPISODES, HEAD, STATE, ANSWER = 4, 8, 32, 64, 16
PROCESSES, TURNS, TOKENS = 2, 3, 1024
TARGET_SPEEDUP, TARGET_READY = 1.5, 15.0


def run(bench: Bench) -> None:
    """Measure it where it is missing and print it."""
    found = bench.cell("processes", lambda: measure(bench))
    print(
        f"\nan update of {found['tokens']} tokens, {found['parameters'] / 1e6:.1f}M weights, by {PROCESSES} processes:"
        f" {found['speedup']:.2f} times as fast as by one (target {TARGET_SPEEDUP});"
        f" by processor seconds {found['cpu_speedup']:.2f} times;"
        f" ready after {found['ready_seconds'][1]:.1f} s (target {TARGET_READY:.0f})"
    )


def measure(bench: Bench) -> BenchResult:
    """Updates by one process and by several, in turns."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    policy = policies.build(MODEL, WORDS, key("policy"))
    policies.save(policy, directory / "policy")
    pq.write_table(SAMPLES.empty_table(), directory / "nothing.parquet")
    tokens = write_samples(directory / "samples.parquet", len(policy.tokenizer))
    with _trainer(directory, 1) as (alone, ready_alone), _trainer(directory, PROCESSES) as (several, ready_several):
        turns = [
            [_update(it, directory / "samples.parquet", turn) for it in (alone, several)] for turn in range(TURNS + 1)
        ]
    shutil.rmtree(directory)
    walls, cpus = (np.median(np.array(turns)[1:, :, column], axis=0).tolist() for column in range(2))  # one to warm up
    return {
        "parameters": sum(parameter.numel() for parameter in policy.model.parameters()),
        "tokens": tokens,
        "processes": [1, PROCESSES],
        "ready_seconds": [ready_alone[0], ready_several[0]],
        "ready_cpu_seconds": [ready_alone[1], ready_several[1]],
        "update_seconds": walls,
        "busiest_cpu_seconds": cpus,
        "speedup": walls[0] / walls[1],
        "cpu_speedup": cpus[0] / cpus[1],
    }


@contextmanager
def _trainer(directory: Path, count: int) -> Iterator[tuple[Trainer, tuple[float, float]]]:
    """A trainer, the seconds until it had answered, and those of its busiest process."""
    config = UpdateConfig(deepspeed=DeepSpeedConfig(processes=count, tokens=TOKENS))
    start, log = StartingPoint(directory / "policy", directory / "policy"), directory / f"log-{count}"
    since = time.perf_counter()
    with Trainer(config, start, temperature=1.0, threads=1, log=log) as it:
        it.update(directory / "nothing.parquet", key("nothing"))
        yield it, (time.perf_counter() - since, max(_cpu(it)))


def _update(trainer: Trainer, batch: Path, turn: int) -> tuple[float, float]:
    """Seconds of an update, and processor seconds of the busiest process."""
    before, since = _cpu(trainer), time.perf_counter()
    trainer.update(batch, key(turn))
    wall = time.perf_counter() - since
    return wall, max(after - each for after, each in zip(_cpu(trainer), before, strict=True))


def _cpu(trainer: Trainer) -> list[float]:
    """Processor seconds of each process so far."""
    first = psutil.Process(trainer.pid)
    return [sum(process.cpu_times()[:2]) for process in first.children() or [first]]


def write_samples(path: Path, vocabulary: int) -> int:
    """Rows of groups that share the beginning of their prompts; returns their tokens."""
    draws = generator(key("samples"))

    def ids(count: int) -> list[int]:
        return [int(token) for token in draws.integers(6, vocabulary, count)]

    rows = []
    for group in range(GROUPS):
        head = ids(HEAD)
        rows += [
            {
                "episode": f"{group}-{episode}",
                "group": f"{group}",
                "turn": 0,
                "prompt_ids": head + ids(STATE),
                "token_ids": ids(ANSWER),
                "logprobs": [-6.0] * ANSWER,
                "advantage": [float(draws.normal())] * ANSWER,
                "value": [],
                "return": [],
            }
            for episode in range(EPISODES)
        ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)
    return len(rows) * (HEAD + STATE + ANSWER)
