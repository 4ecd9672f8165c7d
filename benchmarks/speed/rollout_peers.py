"""A batch's rollout beside Hugging Face ``generate``, on the same prompts turn by turn.

Both have the same 0.8M policy in float32 on the same number of threads, warm-started as a run's is, so that its answers
are as long as actions are. They answer greedily, so that both write the same tokens: that is checked. ``generate`` is
given each turn in left-padded batches, with its cache, at each of several batch sizes, of which the best one counts; it
has the weights as transformers loads them. Ours is the engine of the embedded recipes as a run uses it: what
transformers does around a forward's numbers is left out, matrices are stored by input, what prompts begin with is kept
from turn to turn, answers to one prompt are one row until they part, and rows leave the batch when they end; everything
is forgotten before each round. Greedy answers never part, so the time of our engine with draws is reported as well.
All take turns in one process, so that what else the machine does meets all.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from statistics import median

import torch

from benchmarks.bench import Bench, BenchResult
from benchmarks.speed.group_prompts import PROMPTS, TASKS, configured, parameters, play, taught
from benchmarks.speed.ratios import TimedPair, compared, spending
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.configs.run_config import RunConfig
from coevo.models.engines.requests import Engine, Request
from coevo.models.engines.transformers.embedded_engine import embedded_engine
from coevo.models.policy.language_model import Policy, ends_of
from coevo.utilities.errors import CoevoError

SIZES, ROUNDS, THREADS = (16, 32, 64, 128), 5, 1
GREEDY = ("rollout.sampling.top_k=1", "update.loss.importance_cap=2.0", f"rollout.engine.threads={THREADS}")
DRAWN = -1
"""Ours at temperature 1, as a run draws; ``generate`` is still greedy, which is its faster way."""
TARGET = 4.0
Answers = list[list[tuple[int, ...]]]


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    for lessons in PROMPTS:
        report(lessons, bench.cell(lessons, partial(measure, bench, lessons)))


def report(lessons: str, found: BenchResult) -> None:
    """Print one cell."""
    print(
        f"\nlessons: {lessons}; {found['rows']} prompts of {found['length']:.0f} tokens in {found['turns']} turns, "
        f"{found['parameters'] / 1e6:.1f}M weights, {found['tokens']} tokens written by both\n"
        f"{found['ratio']:.1f} times as fast as generate with its best batch size of {found['best']} "
        f"(target {TARGET:.0f}), {found['cpu_ratio']:.1f} times by processor seconds\n"
        f"{found['drawn_ratio']:.1f} times with draws at temperature 1, where answers to one prompt part sooner\n"
        f"tokens/s {found['tokens_per_second']:.0f}; generate by batch size {_rates(found)}"
    )


def measure(bench: Bench, lessons: str) -> BenchResult:
    """Seconds of the whole batch, ours and theirs in turns."""
    return beside(configured(*GREEDY, *PROMPTS[lessons]), taught(configured(), bench.workspace.cache))


def beside(config: RunConfig, policy: Policy, tasks: int = TASKS) -> BenchResult:
    """The same with a policy."""
    theirs = deepcopy(policy)
    turns, length = play(config, policy, tasks).requests, config.rollout.sampling.max_new_tokens
    drawing = config.rollout.model_copy(update={"sampling": SamplingConfig(temperature=1.0, max_new_tokens=length)})
    asked = {
        0: partial(_ours, embedded_engine(policy, config.rollout), turns),
        DRAWN: partial(_ours, embedded_engine(policy, drawing), turns),
        **{size: partial(generated, theirs, turns, size, length) for size in SIZES},
    }
    answers = {size: ask() for size, ask in asked.items()}
    check_same(answers[0], {size: answers[size] for size in SIZES})
    rounds = [
        {"coevo": {0: spent[0]}, "drawn": {0: spent[DRAWN]}, "generate": {size: spent[size] for size in SIZES}}
        for spent in _rounds(asked)
    ]
    prompts = [request.prompt_ids for turn in turns for request in turn]
    tokens, drawn = (sum(len(answer) for turn in answers[which] for answer in turn) for which in (0, DRAWN))
    found = compared(rounds, "generate")
    drawn_rate = drawn / median(each["drawn"][0][0] for each in rounds)
    return found | {
        "parameters": parameters(policy),
        "rows": len(prompts),
        "length": sum(map(len, prompts)) / len(prompts),
        "turns": len(turns),
        "tokens": tokens,
        "drawn_tokens_per_second": drawn_rate,
        "drawn_ratio": drawn_rate * found["seconds"][str(found["best"])] / tokens,
        "tokens_per_second": tokens / median(each["coevo"][0][0] for each in rounds),
        "generate_tokens_per_second": {size: tokens / seconds for size, seconds in found["seconds"].items()},
        "threads": THREADS,
    }


def _rounds(asked: Mapping[int, Callable[[], Answers]]) -> list[dict[int, TimedPair]]:
    return [{size: spending(ask) for size, ask in asked.items()} for _ in range(ROUNDS)]


def check_same(ours: Answers, theirs: Mapping[int, Answers]) -> None:
    """Make sure that all wrote the same.

    Raises:
        CoevoError: one did not.
    """
    for size, answers in theirs.items():
        pairs = [pair for turns in zip(ours, answers, strict=True) for pair in zip(*turns, strict=True)]
        other = sum(one != another for one, another in pairs)
        if other:
            raise CoevoError(
                f"generate in batches of {size} answers {other} of {len(pairs)} prompts otherwise than the engine: "
                "what they take cannot be compared"
            )


@torch.inference_mode()
def generated(policy: Policy, turns: Sequence[Sequence[Request]], size: int, length: int) -> Answers:
    """Answers of ``generate``, turn by turn, in batches of a size."""
    return [
        [
            answer
            for start in range(0, len(turn), size)
            for answer in _batch(policy, [request.prompt_ids for request in turn[start : start + size]], length)
        ]
        for turn in turns
    ]


def _batch(policy: Policy, prompts: Sequence[tuple[int, ...]], length: int) -> list[tuple[int, ...]]:
    width, ends = max(map(len, prompts)), ends_of(policy)
    ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    found = policy.model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=length,
        use_cache=True,
        eos_token_id=ends,
        pad_token_id=policy.tokenizer.pad_token_id,
    )
    return [ended(row, ends) for row in found[:, width:].tolist()]


def ended(row: Sequence[int], ends: Sequence[int]) -> tuple[int, ...]:
    """An answer up to its end token, which is part of it; without what pads it."""
    stop = next((place for place, token in enumerate(row) if token in ends), len(row))
    return tuple(row[: stop + 1])


def _ours(engine: Engine, turns: Sequence[Sequence[Request]]) -> Answers:
    engine.forget()
    return [[completion.token_ids for completion in engine.generate(turn)] for turn in turns]


def _rates(found: BenchResult) -> str:
    rates = found["generate_tokens_per_second"].items()
    return ", ".join(f"{size}: {rate:.0f}" for size, rate in sorted(rates, key=lambda each: int(each[0])))
