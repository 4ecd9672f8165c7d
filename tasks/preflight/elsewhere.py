"""Steps that other machines compute, of which the forecast knows no rates."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from coevo.configs.bank.author_config import FrozenAuthorConfig, PolicyAuthorConfig
from coevo.configs.rollout.engine_config import EngineConfig, VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine
from coevo.tasks.run.run_author import author_config

PLAYED = ("rollout", "judging", "evaluation", "sync")
"""Steps of the servers that generate."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Steps on other machines.

    Attributes:
        steps: their names.
        machines: the machines, with the setting that names them.
    """

    steps: tuple[str, ...]
    machines: str


def elsewhere(config: RunConfig, machine: Machine) -> list[Elsewhere]:
    """Steps on other machines; none on an assumed machine, which stands for these as well."""
    return [] if machine.assumed else [*_served(config), *_trained(config)]


def untimed_steps(config: RunConfig, machine: Machine, steps: Collection[str]) -> Iterator[str]:
    """Notice of the steps of a run that other machines compute, one per setting that names these.

    Args:
        config: the run.
        machine: machine of the run.
        steps: steps that an iteration has.
    """
    for each in elsewhere(config, machine):
        *first, last = [step for step in steps if step in each.steps] or [""]
        if last:
            named, verb = (f"{', '.join(first)} and {last}", "are") if first else (last, "is")
            yield (
                f"{named} {verb} not in the time, since {each.machines} may be of any speed: `--on MACHINE` estimates "
                "with a machine such as these"
            )


def _served(config: RunConfig) -> Iterator[Elsewhere]:
    engine, author = config.rollout.engine, author_config(config)
    writes = ("writing",)
    if urls := _urls(engine):
        asked = writes if isinstance(author, PolicyAuthorConfig) else ()
        yield Elsewhere((*PLAYED, *asked), f"rollout.engine.urls={urls}")
    if isinstance(author, FrozenAuthorConfig) and (urls := _urls(author.engine)):
        yield Elsewhere(writes, f"bank.writer.author.engine.urls={urls}")


def _trained(config: RunConfig) -> Iterator[Elsewhere]:
    if config.update is not None and config.update.deepspeed.hostfile is not None:
        yield Elsewhere(("update",), f"the machines of update.deepspeed.hostfile={config.update.deepspeed.hostfile}")


def _urls(engine: EngineConfig) -> str:
    """Servers that run elsewhere, as the command line names them; empty without any."""
    urls = engine.urls if isinstance(engine, VllmEngineConfig) else ()
    return f"[{','.join(urls)}]" if urls else ""
