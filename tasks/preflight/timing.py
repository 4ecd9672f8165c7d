"""Time of an iteration with what is left out of it, and settings that would use idle GPUs."""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import join

from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine
from coevo.models.capacity.model_shape import ModelShape
from coevo.tasks.preflight.duration import durations, remote
from coevo.tasks.preflight.elsewhere import untimed_steps
from coevo.tasks.preflight.memory import Lengths, needs
from coevo.tasks.preflight.remedy import changed_by, spread, used
from coevo.tasks.preflight.writing_time import untimed


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


def timing(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, turns: float) -> Timing:
    """Time of an iteration; arguments as of ``durations``."""
    seconds = durations(config, machine, shape, lengths, turns)
    away, asked = remote(config, machine, shape, lengths, turns), list(untimed(config))
    idle = _idle(config, machine, shape, lengths, turns)
    left = (*away, *(["writing"] if asked else []))
    return Timing(seconds, left, (*idle, *untimed_steps(config, machine, away), *asked))


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
