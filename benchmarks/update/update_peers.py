"""An update beside TRL's GRPOTrainer and plain torch, on the same samples.

All have the same 0.8M policy in float32 on one thread, and do the same: log-probs under a frozen reference, then as
many optimizer steps as the recipe takes, each over the same rows, with the same clipped loss, KL, clipping and AdamW.
That they do is checked: their losses agree, also after the first update. Only the update is compared:

- ours is the trainer child of a run, from the file of samples to the end of the last step;
- TRL's trainer is handed its batches as it makes them of completions, so that nothing is generated, rewarded or logged;
  its own functions compute log-probs and loss, its own optimizer steps, and the loop of ``Trainer`` is left out;
- plain torch is the padded forward of Transformers under our loss function.

Of the peers, which pad, the best of several micro-batch sizes counts. All take turns in one run.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Protocol

import numpy as np
import psutil
import torch

from benchmarks.bench import Bench, BenchResult
from benchmarks.speed.group_prompts import PROMPTS, configured, parameters, play, untaught
from benchmarks.speed.ratios import Round, TimedPair, compared, spending
from benchmarks.update.padded_updates import Plain, Trl, logprobs_of
from coevo.configs.update.update_config import UpdateConfig
from coevo.models.advantages.trajectory import Advantages
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.models.trainer.samples import write_samples
from coevo.models.trainer.trainer_client import StartingPoint, Trainer
from coevo.models.trainer.update_batch import read
from coevo.records.draws import Key, extend, generator, key
from coevo.records.episode import Episode
from coevo.utilities.errors import CoevoError

SIZES, ROUNDS = (16, 32, 64, 128), 3
TARGET, CLOSE = 4.0, 1e-4
NAMES = {"trl": "TRL's GRPOTrainer", "torch": "plain torch"}


class Contender(Protocol):
    """Whoever updates a policy of its own."""

    def update(self, draws: Key) -> float:
        """One update; its mean loss a step."""
        ...

    def cpu(self) -> float:
        """Processor seconds used so far."""
        ...


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for lessons in PROMPTS:
        report(lessons, bench.cell(lessons, partial(measure, bench, lessons)))


def report(lessons: str, found: BenchResult) -> None:
    """Print one cell."""
    what = f"{found['tokens']} tokens in {found['rows']} samples"
    print(f"\nlessons: {lessons}; an update of {what}, {found['parameters'] / 1e6:.1f}M weights, is")
    for peer, name in NAMES.items():
        told = found[peer]
        print(
            f"{told['ratio']:5.1f} times as fast as {name} in micro-batches of {told['best']} (target {TARGET:.0f}), "
            f"{told['cpu_ratio']:.1f} times by processor seconds"
        )


def measure(bench: Bench, lessons: str) -> BenchResult:
    """Seconds of updates by all, in turns."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    config = configured(*PROMPTS[lessons])
    assert config.update is not None
    policy = untaught(config)
    played = play(config, policy)
    save(policy, directory / "policy")
    write(directory / "samples.parquet", policy, played.episodes)
    batch = read(directory / "samples.parquet")
    with _ours(directory, config.update) as ours:
        peers: dict[str, dict[int, Contender]] = {
            "trl": {size: Trl(directory, config.update, batch, size) for size in SIZES},
            "torch": {size: Plain(directory, config.update, batch, size) for size in SIZES},
        }
        rounds = [_round(ours, peers, extend(key("peers"), number)) for number in range(ROUNDS + 1)][1:]
    shutil.rmtree(directory)
    return {name: compared(rounds, name) for name in NAMES} | {
        "parameters": parameters(policy),
        "rows": len(batch),
        "tokens": sum(batch.length(row) for row in range(len(batch))),
        "steps": config.update.optimizer.minibatches * config.update.optimizer.epochs,
        "seconds": median(each["coevo"][0][0] for each in rounds),
        "threads": 1,
    }


def check_same(losses: Mapping[str, float]) -> None:
    """Make sure that all have done the same update.

    Raises:
        CoevoError: one has not.
    """
    for name, loss in losses.items():
        if not abs(loss - losses["coevo"]) <= CLOSE:
            raise CoevoError(f"the loss of {name} is {loss:.6f}, ours {losses['coevo']:.6f}: not the same update")


def write(path: Path, policy: Policy, episodes: Sequence[Episode]) -> None:
    """Samples of all turns with the policy's own log-probs; advantages are drawn, none of them 0."""
    told = [_scored(policy, episode) for episode in episodes]
    draws = generator(key("advantages"))
    values = draws.normal(size=len(told))
    lengths = [sum(len(turn.completion.token_ids) for turn in episode.turns) for episode in told]
    tokens = [np.full(length, value) for length, value in zip(lengths, values, strict=True)]
    write_samples(path, told, Advantages(values, tokens, np.ones(len(told), dtype=bool), centred=False))


@torch.inference_mode()
def _scored(policy: Policy, episode: Episode) -> Episode:
    turns = []
    for turn in episode.turns:
        answer = torch.tensor(turn.completion.token_ids)
        ids = torch.tensor([[*turn.prompt_ids, *turn.completion.token_ids]])
        chosen = logprobs_of(policy.model, ids, torch.ones_like(ids), len(answer))[0]
        turns.append(replace(turn, completion=replace(turn.completion, logprobs=tuple(chosen.tolist()))))
    return replace(episode, turns=tuple(turns))


class _Ours:
    """The trainer child of a run."""

    def __init__(self, trainer: Trainer, samples: Path) -> None:
        self._trainer, self._samples = trainer, samples

    def update(self, draws: Key) -> float:
        return self._trainer.update(self._samples, draws).metrics["loss"]

    def cpu(self) -> float:
        return float(sum(psutil.Process(self._trainer.pid).cpu_times()[:2]))


@contextmanager
def _ours(directory: Path, config: UpdateConfig) -> Iterator[Contender]:
    start = StartingPoint(directory / "policy", directory / "policy")
    with Trainer(config, start, temperature=1.0, threads=1, log=directory / "log") as trainer:
        yield _Ours(trainer, directory / "samples.parquet")


def _round(ours: Contender, peers: Mapping[str, Mapping[int, Contender]], draws: Key) -> Round:
    """One update by each, in turn."""
    everyone: dict[str, Mapping[int, Contender]] = {"coevo": {0: ours}, **peers}
    spent: dict[str, dict[int, TimedPair]] = {}
    losses: dict[str, float] = {}
    told: list[float] = []
    for name, sizes in everyone.items():
        for size, contender in sizes.items():
            spent.setdefault(name, {})[size] = spending(partial(_tell, contender, draws, told), contender.cpu)
            losses[f"{name} {size}" if size else name] = told.pop()
    check_same(losses)
    return spent


def _tell(contender: Contender, draws: Key, losses: list[float]) -> None:
    losses.append(contender.update(draws))
