"""The public interface of coevo, for notebooks and plug-ins.

Names are looked up when they are first used, so that importing this costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coevo.envs.base import Environment, Guide, Probe, Step
    from coevo.envs.registry import add as add_environment
    from coevo.envs.stateful.interface import Live
    from coevo.envs.stateful.stateful_environment import StatefulEnvironment
    from coevo.flows.api import (
        ablate,
        approve,
        bank,
        compare,
        curves,
        evaluate,
        log,
        package,
        promote,
        resume,
        run,
        runs,
        serve,
        waiting,
    )
    from coevo.flows.console.trust_prompt import trust
    from coevo.flows.from_rows import from_rows
    from coevo.records.demonstration import Answer, Demonstration, Moment, Note
    from coevo.records.draws import extend, generator, key, seed_of
    from coevo.records.entry import Entry
    from coevo.records.episode import Episode
    from coevo.records.task import Panel, Task
    from coevo.tasks.checks.environment_check import check_environment
    from coevo.utilities.errors import CoevoError

_HOME = {
    "coevo.utilities.errors": ("CoevoError",),
    "coevo.envs.base": ("Environment", "Guide", "Probe", "Step"),
    "coevo.envs.stateful.stateful_environment": ("StatefulEnvironment",),
    "coevo.envs.stateful.interface": ("Live",),
    "coevo.flows.api": (
        "ablate",
        "approve",
        "bank",
        "compare",
        "curves",
        "evaluate",
        "log",
        "package",
        "promote",
        "resume",
        "run",
        "runs",
        "serve",
        "waiting",
    ),
    "coevo.flows.from_rows": ("from_rows",),
    "coevo.records.demonstration": ("Answer", "Demonstration", "Moment", "Note"),
    "coevo.records.draws": ("extend", "generator", "key", "seed_of"),
    "coevo.records.entry": ("Entry",),
    "coevo.records.episode": ("Episode",),
    "coevo.records.task": ("Panel", "Task"),
    "coevo.tasks.checks.environment_check": ("check_environment",),
}
_WHERE = {name: (module, name) for module, names in _HOME.items() for name in names}
_WHERE["trust"] = ("coevo.flows.console.trust_prompt", "trust")
_WHERE["add_environment"] = ("coevo.envs.registry", "add")

__all__ = [
    "Answer",
    "CoevoError",
    "Demonstration",
    "Entry",
    "Environment",
    "Episode",
    "Guide",
    "Live",
    "Moment",
    "Note",
    "Panel",
    "Probe",
    "StatefulEnvironment",
    "Step",
    "Task",
    "ablate",
    "add_environment",
    "approve",
    "bank",
    "check_environment",
    "compare",
    "curves",
    "evaluate",
    "extend",
    "from_rows",
    "generator",
    "key",
    "log",
    "package",
    "promote",
    "resume",
    "run",
    "runs",
    "seed_of",
    "serve",
    "trust",
    "waiting",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from coevo.utilities.extras import extras_named

    module, attribute = _WHERE[name]
    with extras_named():
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
