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
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
import psutil
import torch
from torch import Tensor

from benchmarks.bench import Bench, Result
from benchmarks.group_prompts import GROUP, PROMPTS, configured, parameters, play, untaught
from benchmarks.ratios import Round, Spent, compared, spending
from configs.errors import CoevoError
from configs.update import UpdateConfig
from models.advantages.trajectory import Advantages
from models.losses.aggregation import weights_of
from models.losses.policy import Completions, policy_loss
from models.policy import Policy, load, save
from models.samples import write_samples
from models.trainer.batch import Batch, minibatches, read
from models.trainer.client import Trainer
from records.draws import Key, extend, generator, key
from records.episode import Episode

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


def report(lessons: str, found: Result) -> None:
    """Print one cell."""
    what = f"{found['tokens']} tokens in {found['rows']} samples"
    print(f"\nlessons: {lessons}; an update of {what}, {found['parameters'] / 1e6:.1f}M weights, is")
    for peer, name in NAMES.items():
        told = found[peer]
        print(
            f"{told['ratio']:5.1f} times as fast as {name} in micro-batches of {told['best']} (target {TARGET:.0f}), "
            f"{told['cpu_ratio']:.1f} times by processor seconds"
        )


def measure(bench: Bench, lessons: str) -> Result:
    """Seconds of updates by all, in turns."""
    place = bench.workspace.root
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    config = configured(*PROMPTS[lessons])
    assert config.update is not None
    policy = untaught(config)
    played = play(config, policy)
    save(policy, place / "policy")
    write(place / "samples.parquet", policy, played.episodes)
    batch = read(place / "samples.parquet")
    with _ours(place, config.update) as ours:
        peers: dict[str, dict[int, Contender]] = {
            "trl": {size: Trl(place, config.update, batch, size) for size in SIZES},
            "torch": {size: Plain(place, config.update, batch, size) for size in SIZES},
        }
        rounds = [_round(ours, peers, extend(key("peers"), number)) for number in range(ROUNDS + 1)][1:]
    shutil.rmtree(place)
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


def logprobs_of(model: Any, ids: Tensor, mask: Tensor, kept: int) -> Tensor:
    """Log-probs of the last ``kept`` tokens of rows, [rows, kept]."""
    logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=kept + 1).logits[:, :-1]
    chosen: Tensor = logits.log_softmax(-1).gather(-1, ids[:, -kept:, None]).squeeze(-1)
    return chosen


class _Ours:
    """The trainer child of a run."""

    def __init__(self, trainer: Trainer, samples: Path) -> None:
        self._trainer, self._samples = trainer, samples

    def update(self, draws: Key) -> float:
        return self._trainer.update(self._samples, draws).metrics["loss"]

    def cpu(self) -> float:
        return float(sum(psutil.Process(self._trainer.pid).cpu_times()[:2]))


@contextmanager
def _ours(place: Path, config: UpdateConfig) -> Iterator[Contender]:
    paths = {"policy": place / "policy", "reference": place / "policy", "optimizer": None, "log": place / "log"}
    with Trainer(config, temperature=1.0, threads=1, **paths) as trainer:  # type: ignore[arg-type]
        yield _Ours(trainer, place / "samples.parquet")


class Padded(ABC):
    """A contender in this process that pads micro-batches of some size."""

    def __init__(self, config: UpdateConfig, batch: Batch, size: int) -> None:
        torch.set_num_threads(1)
        self._config, self._batch, self._size = config, batch, size
        self._model: Any = None
        self._optimizer: Any = None

    def cpu(self) -> float:
        """Those of the process."""
        return time.process_time()

    def update(self, draws: Key) -> float:
        """The steps of one pass."""
        steps = minibatches(self._batch, self._config.optimizer.minibatches, extend(draws, "epoch", 0))
        return float(np.mean([self._step(rows) for rows in steps]))

    def _step(self, rows: list[int]) -> float:
        parts = [rows[start : start + self._size] for start in range(0, len(rows), self._size)]
        tokens = int(self._batch.mask[rows].sum())
        total = 0.0
        for part in parts:
            loss = self._loss(padded(self._batch, part), part, tokens, len(parts))
            torch.autograd.backward(loss)
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._config.optimizer.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total

    @abstractmethod
    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        """A micro-batch's part of the loss of a step of so many tokens and parts."""


def padded(batch: Batch, rows: Sequence[int]) -> dict[str, Tensor]:
    """Rows as TRL has them: prompts padded on their left, completions on their right."""
    before = max(len(batch.prompts[row]) for row in rows)
    after = max(len(batch.completions[row]) for row in rows)
    prompts = [(before - len(batch.prompts[row]), batch.prompts[row]) for row in rows]
    completions = [(after - len(batch.completions[row]), batch.completions[row]) for row in rows]
    return {
        "prompt_ids": torch.tensor([[0] * pad + list(ids) for pad, ids in prompts]),
        "prompt_mask": torch.tensor([[0] * pad + [1] * len(ids) for pad, ids in prompts]),
        "completion_ids": torch.tensor([list(ids) + [0] * pad for pad, ids in completions]),
        "completion_mask": torch.tensor([[1] * len(ids) + [0] * pad for pad, ids in completions]),
        "old_per_token_logps": batch.behaviour[rows, :after],
        "advantages": batch.advantages[rows, :after],
    }


def joined(inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, int]:
    """Ids and mask of whole rows, and how many columns are completion."""
    ids, mask = (torch.cat([inputs[f"prompt_{what}"], inputs[f"completion_{what}"]], 1) for what in ("ids", "mask"))
    return ids, mask, inputs["completion_ids"].shape[1]


class Plain(Padded):
    """Transformers' forward, our loss, torch's AdamW."""

    def __init__(self, place: Path, config: UpdateConfig, batch: Batch, size: int) -> None:
        super().__init__(config, batch, size)
        self._model, self._frozen = load(place / "policy").model, load(place / "policy").model
        adam = config.optimizer
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=adam.lr, betas=adam.betas, weight_decay=adam.weight_decay
        )

    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        ids, mask, kept = joined(inputs)
        with torch.no_grad():
            reference = logprobs_of(self._frozen, ids, mask, kept)
        logprobs = logprobs_of(self._model, ids, mask, kept)
        real, old = inputs["completion_mask"].bool(), inputs["old_per_token_logps"]
        weights = weights_of(real, self._batch.episodes[rows], kept, "token-mean") * (int(real.sum()) / tokens)
        told = Completions(
            logprobs, old, old, reference, torch.zeros_like(old), inputs["advantages"], real, weights.float()
        )
        return policy_loss(told, self._config.loss).loss


class Trl(Padded):
    """TRL's trainer with the batches that it would have made of these completions."""

    def __init__(self, place: Path, config: UpdateConfig, batch: Batch, size: int) -> None:
        super().__init__(config, batch, size)
        self._trainer = grpo_trainer(place, config, size)
        self._model, self._optimizer = self._trainer.model, self._trainer.create_optimizer()
        self._model.train()

    def _loss(self, inputs: dict[str, Tensor], rows: list[int], tokens: int, parts: int) -> Tensor:
        ids, mask, kept = joined(inputs)
        trainer = self._trainer
        with torch.no_grad():
            reference = trainer._get_per_token_logps_and_entropies(trainer.ref_model, ids, mask, kept)[0]
        # It scales by these two, whose ratio is 1 where one batch of completions makes one step.
        trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = parts
        more = {"ref_per_token_logps": reference, "num_items_in_batch": torch.tensor(tokens)}
        loss: Tensor = trainer.compute_loss(self._model, inputs | more)
        return loss


def grpo_trainer(place: Path, config: UpdateConfig, size: int) -> Any:
    """TRL's trainer with the settings of an update.

    Raises:
        CoevoError: TRL is not installed.
    """
    if find_spec("trl") is None:
        raise CoevoError("update_peers compares with TRL, which is not installed: pip install 'coevo[bench]'")
    trl, datasets = import_module("trl"), import_module("datasets")
    adam, loss = config.optimizer, config.loss
    arguments = trl.GRPOConfig(
        output_dir=str(place / f"trl-{size}"),
        use_cpu=True,
        bf16=False,
        report_to="none",
        gradient_checkpointing=False,
        per_device_train_batch_size=size,
        num_generations=GROUP,
        loss_type="dapo",
        use_bias_correction_kl=False,
        beta=loss.kl_coefficient,
        epsilon=loss.clip_low,
        epsilon_high=loss.clip_high,
        learning_rate=adam.lr,
        adam_beta1=adam.betas[0],
        adam_beta2=adam.betas[1],
        weight_decay=adam.weight_decay,
    )
    nothing = datasets.Dataset.from_list([{"prompt": "x"}] * size)
    tokenizer = load(place / "policy").tokenizer
    return trl.GRPOTrainer(
        str(place / "policy"), _no_reward, args=arguments, train_dataset=nothing, processing_class=tokenizer
    )


def _no_reward(completions: Sequence[object], **_: object) -> list[float]:
    return [0.0] * len(completions)


def _round(ours: Contender, peers: Mapping[str, Mapping[int, Contender]], draws: Key) -> Round:
    """One update by each, in turn."""
    everyone: dict[str, Mapping[int, Contender]] = {"coevo": {0: ours}, **peers}
    spent: dict[str, dict[int, Spent]] = {}
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
