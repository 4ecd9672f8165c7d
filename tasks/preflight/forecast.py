"""Forecast of a run before its start: needed memory and time, whether they suffice, and changes that would."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import Any

from coevo.configs.errors import CoevoError
from coevo.configs.policy import PretrainedPolicyConfig
from coevo.configs.run import RunConfig
from coevo.envs.base import Environment
from coevo.models.capacity.devices import Machine, here
from coevo.models.capacity.shape import Shape, shape_of
from coevo.models.policy.foreign import absent
from coevo.tasks.preflight.disk import disk_of, full
from coevo.tasks.preflight.duration import durations
from coevo.tasks.preflight.limits import talkative, too_long
from coevo.tasks.preflight.memory import Lengths, MissingGpusError, Need, needs
from coevo.tasks.preflight.rehearse import Rehearsal, glance
from coevo.tasks.preflight.remedy import changed_by, remedy, spread, used
from coevo.tasks.preflight.writing import untimed


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
        notices: long conversations that do not fit, settings that would use idle GPUs, a disk that fills, and answers
            that are not in the time, one line each.
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
    problems, found = [*too_long(config, shape, lengths), *rehearsal.problems], list[Need]()
    try:
        found = needs(config, machine, shape, lengths)
    except MissingGpusError as error:
        problems.append(f"{error}: {remedy(config, machine, lengths, rehearsal.words)}")
    for need in found:
        if not need.fits:
            problems.append(f"{need.lack}: {remedy(config, machine, lengths, rehearsal.words)}")
            break
    turns, disk = max(1.0, rehearsal.length), disk_of(config, machine, shape)
    seconds = {} if problems else durations(config, machine, shape, lengths, turns)
    idle = () if problems else _idle(config, machine, shape, lengths, turns)
    cut = () if problems else talkative(config, machine, shape, lengths, rehearsal.at_most)
    noticed = (*cut, *idle, *full(config, disk), *(() if problems else untimed(config)))
    return Forecast(machine, shape, rehearsal, tuple(found), disk, seconds, noticed, tuple(problems))


def on_this_machine(found: Forecast, config: RunConfig) -> Forecast:
    """Forecast of a start on this machine, which needs the model here; estimates alone do without it."""
    if isinstance(config.policy, PretrainedPolicyConfig) and found.rehearsal.guessed:
        return replace(found, problems=(*found.problems, str(absent(config.policy.path))))
    return found


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
    return Lengths(rehearsal.shortest, rehearsal.longest, config.rollout.sampling.max_new_tokens, rehearsal.last)
