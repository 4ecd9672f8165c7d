"""Forecast of a run before its start: needed memory and time, whether they suffice, and changes that would."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import join
from typing import Any

from coevo.configs.errors import CoevoError
from coevo.configs.policy import PretrainedPolicyConfig
from coevo.configs.rollout.engine import VllmEngineConfig
from coevo.configs.run import RunConfig
from coevo.envs.base import Environment
from coevo.models.capacity.devices import GIB, Machine, here
from coevo.models.capacity.footprint import peak
from coevo.models.capacity.shape import Shape, shape_of
from coevo.models.capacity.storage import stored
from coevo.models.policy.foreign import absent
from coevo.tasks.preflight.duration import durations
from coevo.tasks.preflight.memory import Lengths, MissingGpusError, Need, needs
from coevo.tasks.preflight.rehearse import Rehearsal, glance
from coevo.tasks.preflight.remedy import changed_by, remedy, spread, used


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
        notices: long conversations that do not fit, settings that would use idle GPUs, and a disk that fills, one line
            each.
        problems: reasons why it cannot start there, one line each.
    """

    machine: Machine
    shape: Shape
    rehearsal: Rehearsal
    needs: tuple[Need, ...]
    disk: Need
    seconds: dict[str, float]
    notices: tuple[str, ...]
    problems: tuple[str, ...]


def forecast(config: RunConfig, rehearsal: Rehearsal, machine: Machine) -> Forecast:
    """Forecast a run.

    Raises:
        CoevoError: the model is not on this machine, and the configuration does not give its shape.
    """
    shape, lengths = shape_of(config.policy, rehearsal.words), lengths_of(config, rehearsal)
    problems, found = [*_too_long(config, shape, lengths), *rehearsal.problems], list[Need]()
    try:
        found = needs(config, machine, shape, lengths)
    except MissingGpusError as error:
        problems.append(f"{error}: {remedy(config, machine, lengths, rehearsal.words)}")
    for need in found:
        if not need.fits:
            problems.append(f"{_lack(need)}: {remedy(config, machine, lengths, rehearsal.words)}")
            break
    turns, disk = max(1.0, rehearsal.length), disk_of(config, machine, shape)
    seconds = {} if problems else durations(config, machine, shape, lengths, turns)
    idle = () if problems else _idle(config, machine, shape, lengths, turns)
    cut = () if problems else _talkative(config, machine, shape, lengths, rehearsal.at_most)
    noticed = (*cut, *idle, *_full(config, disk))
    return Forecast(machine, shape, rehearsal, tuple(found), disk, seconds, noticed, tuple(problems))


def on_this_machine(found: Forecast, config: RunConfig) -> Forecast:
    """Forecast of a start on this machine, which needs the model here; estimates alone do without it."""
    if isinstance(config.policy, PretrainedPolicyConfig) and found.rehearsal.guessed:
        return replace(found, problems=(*found.problems, str(absent(config.policy.path))))
    return found


def disk_of(config: RunConfig, machine: Machine, shape: Shape) -> Need:
    """Disk of all revisions of a run, episodes and bank aside."""
    revisions = config.iterations // config.lineage.every if config.update is not None else 0
    critic = config.update is not None and config.update.critic is not None
    items = stored(shape, 1 + revisions, config.lineage.optimizer_every, critic)
    return Need("the disk", peak(items), machine.disk, tuple(items))


def _full(config: RunConfig, disk: Need) -> Iterator[str]:
    if disk.fits or disk.there is None:
        return
    yield (
        f"{config.iterations} iterations keep {disk.bytes / GIB:.0f} GiB of policies, and {disk.there / GIB:.0f} are "
        "free: set lineage.every higher or policy.lora, or run `coevo gc` on the way"
    )


def _idle(config: RunConfig, machine: Machine, shape: Shape, lengths: Lengths, turns: float) -> Iterator[str]:
    """Settings that use all GPUs of the machine, if some are idle and these are quicker."""
    count, busy = len(machine.gpus), used(config)
    overrides = spread(config, count) if 0 < busy < count else ()
    if not overrides:
        return
    wider = changed_by(config, overrides)
    before, after = (sum(durations(each, machine, shape, lengths, turns).values()) for each in (config, wider))
    if after < before:
        yield (
            f"{busy} of {count} GPUs are used: set {join(overrides)} for about {after:.0f} s per iteration "
            f"instead of {before:.0f}"
        )


def check_fits(config: RunConfig, env: Environment[Any], workspace: Path) -> None:
    """Refuse a run that cannot fit this machine and the disk of its workspace.

    Raises:
        CoevoError: it cannot; with the reason and a remedy.
    """
    problems = forecast(config, glance(config, env), here(workspace)).problems
    if problems:
        raise CoevoError(problems[0])


def lengths_of(config: RunConfig, rehearsal: Rehearsal) -> Lengths:
    """Lengths of prompts and answers in tokens."""
    return Lengths(rehearsal.shortest, rehearsal.longest, config.rollout.sampling.max_new_tokens)


def _lack(need: Need) -> str:
    first = ", ".join(f"{item.what} {item.bytes / GIB:.1f}" for item in need.parts[:3])
    there = 0 if need.there is None else need.there
    return f"{need.where} has {there / GIB:.1f} GiB, and {need.bytes / GIB:.1f} are needed ({first})"


def _too_long(config: RunConfig, shape: Shape, lengths: Lengths) -> Iterator[str]:
    limit, name = _limit(config, shape)
    if lengths.longest + lengths.answer > limit:
        yield (
            f"the longest prompt and answer come to {lengths.longest} + {lengths.answer} tokens, {name} attends to "
            f"{limit}: lower context.experience_tokens, context.memory_length or rollout.sampling.max_new_tokens"
        )


def _talkative(config: RunConfig, machine: Machine, shape: Shape, lengths: Lengths, at_most: int) -> Iterator[str]:
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
        yield f"if all answers of a conversation have {lengths.answer} tokens, {_lack(need)}"


def _limit(config: RunConfig, shape: Shape) -> tuple[int, str]:
    """Tokens that the policy attends to, or its server if that is less, and which of the two it is."""
    engine = config.rollout.engine
    served = engine.max_model_len if isinstance(engine, VllmEngineConfig) else None
    if served is not None and served < shape.positions:
        return served, "rollout.engine.max_model_len"
    return shape.positions, "the policy"
