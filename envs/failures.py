"""Failures of an environment: why it cannot continue an episode, which is then excluded from metrics and training."""

from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, Literal, TypeVar

from coevo.records.inert import encodable
from coevo.utilities.errors import CoevoError

T = TypeVar("T")
MAX_REASON_CHARS = 300
"""Most characters of a reason."""
MAX_FILE_CHARS = 80
"""Most characters of a file name in a reason."""
LIBRARIES = (get_path("stdlib"), get_path("purelib"), get_path("platlib"))
"""Folders of code that is not an environment's own."""

RAISED = (Exception, CancelledError, SystemExit)
"""Exceptions that are an environment's own; ``KeyboardInterrupt`` is the user's."""

FailureKind = Literal["exception", "timeout", "crash", "invalid"]
"""``exception``: its code raised one. ``timeout``: it took too long. ``crash``: its process ended. ``invalid``: it
returned something that is no step.
"""


@dataclass(frozen=True, slots=True)
class EpisodeFailure:
    """Failure of an environment in one episode.

    Attributes:
        kind: part of the metric's name.
        detail: one line.
    """

    kind: FailureKind
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


class EpisodeLostError(CoevoError):
    """Failure of an environment, for a caller that plays a single episode."""

    def __init__(self, loss: EpisodeFailure) -> None:
        super().__init__(str(loss))
        self.loss = loss


def attempted(call: Callable[[], T]) -> T | EpisodeFailure:
    """Return the result of an environment's code, or its failure."""
    try:
        return call()
    except EpisodeLostError as error:
        return error.loss
    except RAISED as error:
        return EpisodeFailure("exception", described(error))


def sound(result: T | EpisodeFailure) -> T:
    """Return a result, or raise ``EpisodeLostError`` with its failure."""
    if isinstance(result, EpisodeFailure):
        raise EpisodeLostError(result)
    return result


def described(error: BaseException) -> str:
    """An exception on one line, with the line of code that raised it: of the environment rather than of a library."""
    frames = extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if not frame.filename.startswith(LIBRARIES)), frames[-1])
    location = f" ({one_line(Path(last.filename).name, MAX_FILE_CHARS)}:{last.lineno})"
    return one_line(f"{type(error).__name__}: {_words(error)}", MAX_REASON_CHARS - len(location)) + location


def _words(error: BaseException) -> str:
    """Text of an exception, which has code of its own to say it."""
    try:
        return str(error)
    except RAISED as other:
        return f"its text raises {type(other).__name__}"


def one_line(text: str, most: int = MAX_REASON_CHARS) -> str:
    """Text on one line of at most ``most`` characters, which UTF-8 can encode."""
    return encodable(" ".join(text.split())[:most])


def invalid(expected: str, value: Any) -> EpisodeFailure:
    """Failure of an environment that returned something else than expected."""
    return EpisodeFailure("invalid", one_line(f"{type(value).__name__} {value!a:.80} is no {expected}"))
