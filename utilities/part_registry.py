"""The registry of parts: for each ``type`` that a configuration may name, where its code is."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from traceback import walk_tb
from typing import Generic, TypeVar

from coevo.utilities.errors import ConfigError, nearest

PartT = TypeVar("PartT")
MAX_MESSAGE_CHARS = 400
"""Most characters of another package's message."""
_OUTSIDE: set[str] = set()
"""Packages and modules that parts were imported from, coevo's own and Python's aside."""


class Registry(Generic[PartT]):
    """Parts of one kind by name, each imported on first use: built-in ones, and those that packages register.

    A built-in part takes precedence over an installed one of the same name.

    Attributes:
        parts: ``package.module:attribute`` of each built-in part, by name.
    """

    def __init__(self, setting: str, parts: Mapping[str, str], group: str | None = None) -> None:
        """Args:
        setting: key of the configuration that names a part, for messages: ``update.reward.type``.
        parts: ``package.module:attribute`` of each built-in part, by name.
        group: entry-point group under which packages register theirs, such as ``coevo.envs``; None where they cannot.
        """
        self.parts = parts
        self._setting, self._group = setting, group

    def names(self) -> list[str]:
        """Names of the built-in and the installed parts, sorted."""
        return sorted({*self.parts, *self._installed()})

    def __contains__(self, name: str) -> bool:
        """Return True for a built-in or an installed part."""
        return name in self.parts or name in self._installed()

    def load(self, name: str) -> PartT:
        """The part of this name.

        Raises:
            ConfigError: there is no part of this name, or it cannot be imported.
        """
        reference = self.parts.get(name) or self._installed().get(name)
        if reference is None:
            names = self.names()
            near = nearest(name, names)
            raise ConfigError(f"{self._setting} = {name!r}: no such part.{near} Choose one of {', '.join(names)}")
        return self.imported(name, reference)

    def imported(self, name: str, reference: str) -> PartT:
        """The object at ``package.module:attribute``; ``name`` is the value of the setting, for messages.

        Raises:
            ConfigError: the module cannot be imported or parsed, raises, or lacks the attribute.
        """
        module, _, attribute = reference.partition(":")
        try:
            home = import_module(module)
        except ImportError as error:
            said = " ".join(str(error).split())
            raise ConfigError(
                f"{self._setting} = {name!r}: {module} cannot be imported ({said}); install its package, or "
                "name the folder of a module of your own in python_path"
            ) from error
        except SyntaxError as error:
            raise ConfigError(
                f"{self._setting} = {name!r}: {error.filename}, line {error.lineno}: {error.msg}: mend the module"
            ) from error
        except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            raise ConfigError(f"{self._setting} = {name!r}: {module} raises {said} when imported; mend it") from error
        _OUTSIDE.update({module.partition(".")[0]} - {"coevo"} - sys.stdlib_module_names)
        part: PartT | None = getattr(home, attribute, None)
        if part is None:
            near = nearest(attribute, (each for each in vars(home) if not each.startswith("_")))
            remedy = f".{near}" if near else "; name an attribute of the module"
            raise ConfigError(f"{self._setting} = {name!r}: {module} has no {attribute}{remedy}")
        return part

    def _installed(self) -> dict[str, str]:
        return {} if self._group is None else installed(self._group)


def installed(group: str) -> dict[str, str]:
    """``package.module:attribute`` of each part that installed packages register, by name; nothing is imported."""
    return {entry.name: f"{entry.module}:{entry.attr}" for entry in entry_points(group=group)}


def part_fault(error: BaseException) -> str | None:
    """One line for an error that a part of another package raised: where, and what; None for every other error."""
    frames = walk_tb(error.__traceback__)
    inside = [each for each in frames if str(each[0].f_globals.get("__name__")).partition(".")[0] in _OUTSIDE]
    if not inside:
        return None
    frame, line = inside[-1]
    said = " ".join(f"{type(error).__name__}: {error}"[:MAX_MESSAGE_CHARS].split()).removesuffix(":")
    return f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_qualname}: {said}: mend this part"
