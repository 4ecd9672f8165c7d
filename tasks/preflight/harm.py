"""Settings and parts of a run under which nothing is learned or shown, or the wrong thing is, one line each."""

from collections.abc import Iterable, Iterator, Sequence

from coevo.configs.base import TOKENS
from coevo.configs.rollout.rollout_config import COLD
from coevo.configs.run_config import RunConfig
from coevo.configs.threads import usable_cores
from coevo.envs.base import Environment
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.standin import tokenizer_of
from coevo.models.rewards.rewards import unrewarded
from coevo.records.entry import Entry
from coevo.records.task import Task

SHORTEST = Entry("", "do", "", "", "", "", "train", (), 0, 0)
"""The shortest lesson."""


def greedy(config: RunConfig) -> Iterator[str]:
    """Say that draws are nearly equal where attempts at a task are compared with each other."""
    temperature, bank, update = config.rollout.sampling.temperature, config.bank, config.update
    if temperature > COLD or not config.iterations:
        return
    remedy = "set rollout.sampling.temperature=1.0"
    if update is not None:
        compared = "the attempts at a task are nearly equal, and an update learns from their difference"
        explored = "the policy repeats its likeliest answers, and an update learns from others"
        said = compared if update.advantage.grouped else explored
        yield f"at rollout.sampling.temperature={temperature:g} {said}: {remedy}"
    elif bank is not None and bank.writer.type.endswith("-contrast"):
        yield (
            f"at rollout.sampling.temperature={temperature:g} the attempts at a task are nearly equal, and "
            f"bank.writer.type={bank.writer.type} compares successes with failures: {remedy}"
        )


def crowded(config: RunConfig) -> Iterator[str]:
    """Say that threads have to share cores; their number is part of the run's identity, and stays."""
    threads, cores = config.rollout.engine.threads, usable_cores()
    if threads > cores:
        yield (
            f"rollout.engine.threads={threads} is more than the {cores} usable cores, so that threads wait for each "
            f"other; results stay those of {threads} threads: in a new run or a branch, set "
            f"rollout.engine.threads={cores}"
        )


def closed(config: RunConfig) -> Iterator[str]:
    """Say that no iteration shows the bank, by the number of iterations or the room of the prompt."""
    if config.bank is None:
        return
    warmup = config.bank.retrieval.warmup
    if 0 < config.iterations <= warmup:
        yield (
            f"bank.retrieval.warmup={warmup} shows no entry of the bank in iterations={config.iterations}: set "
            f"bank.retrieval.warmup={config.iterations // 2}, or more iterations"
        )


def without_room(config: RunConfig, env: Environment[object], written: Sequence[Entry]) -> Iterator[str]:
    """Say that no lesson fits the prompt's budget.

    Args:
        config: the run.
        env: its environment.
        written: lessons that its writer finds in expert episodes; without any, the shortest possible one is tried.
    """
    if config.bank is None:
        return
    tokenizer = tokenizer_of(config.policy, (*env.vocabulary(), *CONTEXT_WORDS))
    wide = Context(config.context.model_copy(update={"experience_tokens": TOKENS}), tokenizer)
    sizes = [wide.size([entry], "") for entry in written or [SHORTEST]]
    budget = config.context.experience_tokens
    if min(sizes) > budget:
        lessons = f"each of {len(sizes)} lessons that the writer finds" if written else "any lesson"
        yield (
            f"context.experience_tokens={budget} leaves out {lessons}, the shortest of {min(sizes)} tokens: set "
            f"context.experience_tokens={max(sizes) * max(1, config.bank.retrieval.k)}"
        )


def leaked(name: str, trained: Iterable[Task], panel: Sequence[Task]) -> Iterator[str]:
    """Say that a panel holds training tasks; the gate of episodes stops a run that plays one."""
    shared = {task.id for task in trained} & {task.id for task in panel}
    if shared:
        yield (
            f"{len(shared)} of the {len(panel)} tasks of panel {name} are training tasks, which its figures would take "
            "for held-out ones, and the run stops when it draws one: sample must leave them out (coevo envs check)"
        )


def misrewarded(env: Environment[object], outcomes: Sequence[tuple[bool, float]]) -> Iterator[str]:
    """Say that success earns nothing, or that a return is out of the declared range, which stops a run.

    Args:
        env: environment of the episodes.
        outcomes: success and return of each.
    """
    low, high = env.reward_range
    wrong = next((earned for _, earned in outcomes if not low <= earned <= high), None)
    if wrong is not None:
        yield (
            f"an episode of {env.name} earns {wrong:g}, which is not between {low:g} and {high:g}, and the run stops "
            "there: scale the rewards, or set the class attribute reward_range"
        )
    count = unrewarded(outcomes, env.reward_range)
    if count:
        yield (
            f"{count} of {len(outcomes)} episodes of {env.name} succeed and earn no more than a failure, so that an "
            "update learns nothing of success: reward it in Environment.step"
        )
