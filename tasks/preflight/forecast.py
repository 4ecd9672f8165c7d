"""Forecast of a run before its start: needed memory and time, whether they suffice, and changes that would."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.models.capacity.devices import Machine, here
from coevo.models.capacity.model_shape import ModelShape, shape_of
from coevo.tasks.preflight.disk_use import disk_of, full
from coevo.tasks.preflight.gpus import MissingGpusError
from coevo.tasks.preflight.lacking import lacking
from coevo.tasks.preflight.memory import Lengths, Need, needs
from coevo.tasks.preflight.prompt_lengths import cut_short, talkative, too_long, too_short
from coevo.tasks.preflight.rehearse import Rehearsal, glance
from coevo.tasks.preflight.remedy import Offer, remedy
from coevo.tasks.preflight.timing import timing
from coevo.utilities.errors import CoevoError


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
    whole = Forecast(machine, shape, rehearsal, tuple(found), disk, {}, (), noticed, tuple(problems))
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


def check_fits(config: RunConfig, env: Environment[Any], workspace: Path, offer: Callable[[], Offer] = Offer) -> None:
    """Refuse a run that cannot fit this machine and the disk of its workspace, or whose author has no key here.

    Args:
        config: the run.
        env: its environment.
        workspace: directory of its workspace.
        offer: how its user changes settings, asked for where there is a problem.

    Raises:
        CoevoError: it cannot; with the reason and a remedy.
    """
    problems = [*lacking(config), *forecast(config, glance(config, env), here(workspace), offer).problems]
    if problems:
        raise CoevoError(problems[0])


def lengths_of(config: RunConfig, rehearsal: Rehearsal) -> Lengths:
    """Lengths of prompts and answers in tokens."""
    return Lengths(rehearsal.shortest, rehearsal.longest, config.rollout.sampling.max_new_tokens, rehearsal.last)
