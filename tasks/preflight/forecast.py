"""Forecast of a run before its start: needed memory and time, whether they suffice, and changes that would."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import join
from typing import Any

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.models.capacity.devices import GIB, Machine, here
from coevo.models.capacity.footprint import peak, stored
from coevo.models.capacity.model_shape import ModelShape, shape_of
from coevo.models.policy.foreign import absent
from coevo.tasks.preflight.duration import durations, remote, unknown_replays, untimed_steps
from coevo.tasks.preflight.gpus import MissingGpusError
from coevo.tasks.preflight.memory import Lengths, Need, needs
from coevo.tasks.preflight.rehearse import Rehearsal, glance, rehearse
from coevo.tasks.preflight.remedy import Offer, changed_by, remedy, spread, used
from coevo.tasks.preflight.spending import PolicySpending, spending
from coevo.tasks.preflight.writing_time import untimed
from coevo.tasks.run.run_writer_model import check_endpoints
from coevo.utilities.errors import CoevoError

THOUGHT_TOKENS = 256
"""Tokens of a short thought; reasoning models take several times as many."""
MAX_LIMITED_SHARE = 0.5
"""Share of episodes up to which a limit of turns is not noticed."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Time of an iteration.

    Attributes:
        seconds: rough seconds by step.
        untimed: steps that are not in ``seconds``, since their speed is not known.
        notices: settings that would use idle GPUs, and what is not in the time, one line each.
    """

    seconds: dict[str, float]
    untimed: tuple[str, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a run.

    Attributes:
        machine: machine of the run.
        shape: shape of its policy.
        rehearsal: its prompts and first turns.
        needs: memory needed per device.
        disk: what the whole run keeps there, and the free space.
        seconds: rough seconds per iteration, by step.
        untimed: steps that are not in ``seconds``, since their speed is not known.
        notices: long conversations that do not fit, settings that would use idle GPUs, a disk that fills, and answers
            that are not in the time, one line each.
        problems: reasons why it cannot start there, one line each.
        spending: what it takes of its policy's endpoint; None without one.
    """

    machine: Machine
    shape: ModelShape
    rehearsal: Rehearsal
    needs: tuple[Need, ...]
    disk: Need
    seconds: dict[str, float]
    untimed: tuple[str, ...]
    notices: tuple[str, ...]
    problems: tuple[str, ...]
    spending: PolicySpending | None = None


def forecast(config: RunConfig, rehearsal: Rehearsal, machine: Machine, offer: Callable[[], Offer] = Offer) -> Forecast:
    """Forecast a run.

    Args:
        config: the run.
        rehearsal: its prompts.
        machine: machine of the run.
        offer: how its user changes settings, asked for where there is a problem.

    Raises:
        CoevoError: the model is not on this machine, and the configuration does not give its shape.
    """
    shape, lengths = shape_of(config.policy, rehearsal.words), lengths_of(config, rehearsal)
    problems, found, lack = [*too_long(config, shape, lengths, offer), *rehearsal.problems], list[Need](), ""
    try:
        found = needs(config, machine, shape, lengths)
        lack = next((need.lack for need in found if not need.fits), "")
    except MissingGpusError as error:
        lack = str(error)
    if lack:
        problems.append(f"{lack}: {remedy(config, machine, lengths, rehearsal.words, offer())}")
    disk = disk_of(config, machine, shape)
    noticed = (*too_short(config, rehearsal), *full(config, disk))
    taken = spending(config, lengths, rehearsal.length)
    whole = Forecast(machine, shape, rehearsal, tuple(found), disk, {}, (), noticed, tuple(problems), taken)
    return whole if problems else _timed(whole, config, lengths)


def _timed(found: Forecast, config: RunConfig, lengths: Lengths) -> Forecast:
    """Forecast of a run that can start, with its time and its notices."""
    rehearsal, machine, shape = found.rehearsal, found.machine, found.shape
    timed = timing(config, machine, shape, lengths, max(1.0, rehearsal.length))
    cut = talkative(config, machine, shape, lengths, rehearsal.at_most)
    noticed = (*cut_short(config, rehearsal.cut), *cut, *found.notices, *timed.notices)
    return replace(found, seconds=timed.seconds, untimed=timed.untimed, notices=noticed)


def on_this_machine(found: Forecast, config: RunConfig) -> Forecast:
    """Forecast of a start on this machine, which needs model and key here; estimates alone do without them."""
    problems = (*found.problems, *lacking(config, found.rehearsal.guessed))
    return replace(found, problems=problems)


def check_fits(
    config: RunConfig, env: Environment[Any], workspace: Path, offer: Callable[[], Offer] = Offer
) -> PolicySpending | None:
    """Refuse a run that cannot fit this machine and the disk of its workspace, or whose model has no key here.

    Args:
        config: the run.
        env: its environment.
        workspace: directory of its workspace.
        offer: how its user changes settings, asked for where there is a problem.

    Returns:
        What it takes of its policy's endpoint; None without one.

    Raises:
        CoevoError: it cannot; with the reason and a remedy.
    """
    # Whole episodes cost calls, of which a glance knows no number.
    rehearsal = rehearse(config, env) if config.policy.type == "endpoint" else glance(config, env)
    found = forecast(config, rehearsal, here(workspace), offer)
    problems = [*lacking(config), *found.problems]
    if problems:
        raise CoevoError(problems[0])
    return found.spending


def lengths_of(config: RunConfig, rehearsal: Rehearsal) -> Lengths:
    """Lengths of prompts and answers in tokens."""
    return Lengths(rehearsal.shortest, rehearsal.longest, config.rollout.sampling.max_new_tokens, rehearsal.last)


def disk_of(config: RunConfig, machine: Machine, shape: ModelShape) -> Need:
    """Disk of all revisions of a run, episodes and bank aside.

    Args:
        config: the run.
        machine: machine of the run, with the free space of its workspace.
        shape: shape of its policy.
    """
    revisions = config.iterations // config.lineage.every if config.update is not None else 0
    critic = config.update is not None and config.update.critic is not None
    items = stored(shape, 1 + revisions, config.lineage.optimizer_every, critic)
    return Need("the disk", peak(items), machine.disk, tuple(items))


def full(config: RunConfig, disk: Need) -> Iterator[str]:
    """Notice of a disk that fills during the run."""
    if disk.fits or disk.there is None:
        return
    yield (
        f"{config.iterations} iterations keep {disk.bytes / GIB:.0f} GiB of policies, and {disk.there / GIB:.0f} are "
        "free: set lineage.every higher or policy.lora, or run `coevo gc` on the way"
    )


def lacking(config: RunConfig, guessed: bool = False) -> Iterator[str]:
    """Reasons why a run cannot start here, one line each.

    Args:
        config: the run.
        guessed: True if its prompts were estimated without the policy's files.
    """
    if isinstance(config.policy, PretrainedPolicyConfig) and guessed:
        yield str(absent(config.policy.path))
    yield from _lacking_key(config)


def _lacking_key(config: RunConfig) -> Iterator[str]:
    """Reason why an endpoint cannot be asked; that of a writer would be found once the policy has warmed up."""
    try:
        check_endpoints(config)
    except CoevoError as error:
        yield str(error)


def timing(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float) -> Timing:
    """Time of an iteration; arguments as of ``durations``."""
    seconds = durations(config, machine, shape, lengths, turns)
    away, asked = remote(config, machine, shape, lengths, turns), list(untimed(config))
    idle = _idle(config, machine, shape, lengths, turns)
    replayed = list(unknown_replays(config))
    left = (*away, *(["writing"] if asked else []), *(["judging"] if replayed else []))
    return Timing(seconds, left, (*idle, *untimed_steps(config, machine, away), *asked, *replayed))


def _idle(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float) -> Iterator[str]:
    """Settings that use all GPUs of the machine, if some are idle and these are quicker."""
    count, busy = len(machine.gpus), used(config)
    overrides = spread(config, count) if 0 < busy < count else ()
    if not overrides:
        return
    wider = changed_by(config, overrides)
    before, after = (sum(durations(each, machine, shape, lengths, turns).values()) for each in (config, wider))
    away = remote(config, machine, shape, lengths, turns)
    if after < before and all(need.fits for need in needs(wider, machine, shape, lengths)):
        yield (
            f"{busy} of {count} GPUs are used: set {join(overrides)} for about {after:.0f} s per iteration "
            f"instead of {before:.0f}" + (f", without {', '.join(away)}" if away else "")
        )


def too_long(config: RunConfig, shape: ModelShape, lengths: Lengths, offer: Callable[[], Offer]) -> Iterator[str]:
    """Problem of a prompt that leaves no room for an answer; ``offer`` is how its user changes settings."""
    limit, name = _limit(config, shape)
    if lengths.longest + lengths.answer > limit:
        yield (
            f"the longest prompt and answer come to {lengths.longest} + {lengths.answer} tokens, {name} attends to "
            f"{limit}: lower context.experience_tokens, context.memory_length or rollout.sampling.max_new_tokens, "
            f"or set context.observation_tokens, which shortens observations{offer().example}"
        )


def cut_short(config: RunConfig, cut: float) -> Iterator[str]:
    """Notice of a limit of turns that most episodes of a random agent reach; ``cut`` is their share."""
    if cut > MAX_LIMITED_SHARE:
        yield (
            f"rollout.max_turns={config.rollout.max_turns} ended {cut:.0%} of a random agent's episodes, not the "
            "environment: a task that takes more turns cannot succeed; raise it if some do"
        )


def too_short(config: RunConfig, rehearsal: Rehearsal) -> Iterator[str]:
    """Notice of answers that have no room for an action, or for the thinking before it."""
    most, need = config.rollout.sampling.max_new_tokens, rehearsal.answer
    thinks = rehearsal.thinking == "on"
    if need > most:
        yield (
            f"rollout.sampling.max_new_tokens={most} cuts off the action {rehearsal.action!r:.60}, an answer of {need} "
            f"tokens: set rollout.sampling.max_new_tokens={_enough(need + thinks * THOUGHT_TOKENS)}"
        )
    elif thinks and need + THOUGHT_TOKENS > most:
        yield (
            f"rollout.sampling.max_new_tokens={most} leaves {most - need} tokens for thinking before the action: set "
            f"rollout.sampling.max_new_tokens={_enough(need + 4 * THOUGHT_TOKENS)}, or "
            "context.template={enable_thinking: false}"
        )


def _enough(tokens: int) -> int:
    """The next power of two."""
    return 1 << (tokens - 1).bit_length()


def talkative(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, at_most: int) -> Iterator[str]:
    """Notices of conversations that fit with short answers alone: past ``_limit``, or past the memory."""
    limit, name = _limit(config, shape)
    if at_most + lengths.answer > limit:
        yield (
            f"if all answers of a conversation have {lengths.answer} tokens, the longest prompt and answer come to "
            f"{at_most} + {lengths.answer}, and {name} attends to {limit}, where the episode ends (overlong): lower "
            "context.memory_length, rollout.max_turns or rollout.sampling.max_new_tokens"
        )
    longest = max(lengths.longest, min(at_most, limit - lengths.answer))
    lacking = (need for need in needs(config, machine, shape, replace(lengths, longest=longest)) if not need.fits)
    for need in islice(lacking, 1):
        yield f"if all answers of a conversation have {lengths.answer} tokens, {need.lack}"


def _limit(config: RunConfig, shape: ModelShape) -> tuple[int, str]:
    """Tokens that the policy attends to, or its server if that is less, and which of the two it is."""
    engine = config.rollout.engine
    served = engine.max_model_len if isinstance(engine, VllmEngineConfig) else None
    if served is not None and served < shape.positions:
        return served, "rollout.engine.max_model_len"
    return shape.positions, "the policy"
