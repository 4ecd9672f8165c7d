"""The public face of coevo: what notebooks and plug-ins import.

Names are looked up when they are first used, so that importing this costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from configs.errors import CoevoError
    from envs.base import Environment, Probe, Step
    from envs.registry import add as add_environment
    from flows.api import (
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
    from flows.trust import trust
    from records.demonstration import Answer, Demonstration, Moment
    from records.draws import extend, generator, key
    from records.entry import Entry
    from records.episode import Episode
    from records.task import Panel, Task

_HOME = {
    "configs.errors": ("CoevoError",),
    "envs.base": ("Environment", "Probe", "Step"),
    "flows.api": (
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
    "records.demonstration": ("Answer", "Demonstration", "Moment"),
    "records.draws": ("extend", "generator", "key"),
    "records.entry": ("Entry",),
    "records.episode": ("Episode",),
    "records.task": ("Panel", "Task"),
}
_WHERE = {name: (module, name) for module, names in _HOME.items() for name in names}
_WHERE["trust"] = ("flows.trust", "trust")
_WHERE["add_environment"] = ("envs.registry", "add")

__all__ = [
    "Answer",
    "CoevoError",
    "Demonstration",
    "Entry",
    "Environment",
    "Episode",
    "Moment",
    "Panel",
    "Probe",
    "Step",
    "Task",
    "add_environment",
    "approve",
    "bank",
    "compare",
    "curves",
    "evaluate",
    "extend",
    "generator",
    "key",
    "log",
    "package",
    "promote",
    "resume",
    "run",
    "runs",
    "serve",
    "trust",
    "waiting",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
