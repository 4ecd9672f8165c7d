"""Errors that a user can act on, printed as one line with exit code 2, and words of such lines."""

from collections.abc import Iterable
from difflib import get_close_matches


class CoevoError(Exception):
    """A mistake or an outside condition: one line that names the problem and the remedy."""


class ConfigError(CoevoError):
    """A configuration that cannot be used: names the field, its value and a valid one."""


MAX_NAME_CHARS = 80
"""Most characters of a name in a message."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'y'?`` for the most similar known name; empty if none is similar."""
    near = get_close_matches(name[: 2 * MAX_NAME_CHARS], list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str], remedy: str) -> str:
    """Return an error message of one line for a name that does not exist.

    Args:
        kind: kind of the name, for example ``recipe``.
        name: as the user typed it.
        known: the names that exist.
        remedy: a sentence, without its full stop, that names where they are listed.
    """
    shown = repr(name)
    shown = shown if len(shown) <= MAX_NAME_CHARS else f"{shown[:MAX_NAME_CHARS]}..."
    return f"No {kind} {shown}.{nearest(name, known)} {remedy}"


def counted(number: int, name: str) -> str:
    """Number and name, for example ``1 turn`` or ``2 turns``."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
