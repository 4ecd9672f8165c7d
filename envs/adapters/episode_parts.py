"""Parts that the simulators of several adapters share: facts of an environment, bounded texts, draws, and imports.

Workers of other interpreters import it: numpy and pydantic are all that it needs.
"""

import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from math import isfinite
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.records.inert import encodable
from coevo.utilities.errors import CoevoError, ConfigError
from coevo.utilities.part_registry import Registry

T = TypeVar("T")
OPEN = "the task is open"
"""First observation of an environment that shows nothing."""
LEFT_OUT = "\n[... {count} characters are left out ...]"


class SimulatorFacts(BaseModel):
    """Description that a simulator gives of itself.

    Attributes:
        refused: why it cannot be played, with a remedy; empty if it can.
        guide: how to act, in words.
        verbs: all actions, where they are few texts.
        tools: tools as JSON schemas of functions.
        answer: form of an answer: ``block`` for texts of any lines, ``whole`` where the whole answer is the action,
            empty for the usual forms.
        words: every word of an observation or an action; empty if unknown.
        rows: tasks that it brings along; empty for tasks by seed or of a table.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    refused: str = ""
    guide: str = ""
    verbs: tuple[str, ...] = ()
    tools: tuple[dict[str, JsonValue], ...] = ()
    answer: Literal["", "block", "whole"] = ""
    words: tuple[str, ...] = Field(default=())
    rows: tuple[dict[str, JsonValue], ...] = ()


class GlobalDraws:
    """An episode's own state of the generators that ``random`` and ``numpy.random`` share in a process.

    Args:
        seed: seed of both.
    """

    def __init__(self, seed: int) -> None:
        own = random.Random(seed)
        self._python, self._numpy = own.getstate(), np.random.RandomState(seed % 2**32).get_state()

    def __enter__(self) -> None:
        """Draw from this state."""
        self._before = random.getstate(), np.random.get_state()
        random.setstate(self._python)
        np.random.set_state(self._numpy)

    def __exit__(self, *_: object) -> None:
        """Leave the state of others as it was."""
        self._python, self._numpy = random.getstate(), np.random.get_state()
        random.setstate(self._before[0])
        np.random.set_state(self._before[1])


def bounded(text: str, most: int) -> str:
    """Text that UTF-8 can encode, of ``most`` characters; what is left out is counted at its end."""
    if len(text) > most:
        mark = LEFT_OUT.format(count=len(text) - most)
        text = text[: max(0, most - len(mark))] + mark[:most]
    return encodable(text)


def shown(value: Any) -> str:
    """A value as a policy reads it: a text as it is, JSON where there is some, else ``str``."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def read_json_call(action: str) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of a call whose tool checks them; None for any other action."""
    try:
        call = json.loads(encodable(action))
        name, arguments = call["name"], call["arguments"]
        arguments = json.loads(encodable(json.dumps(arguments, ensure_ascii=False, allow_nan=False)))
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def number(value: Any, source: str) -> float:
    """A reward as a finite number. Raises ``CoevoError``."""
    if isinstance(value, Real | np.generic) and isfinite(value):
        return float(value)
    raise CoevoError(f"{source} returned {value!r:.60}, not a finite number")


def imported(setting: str, reference: str) -> Any:
    """The object at ``package.module:attribute``.

    Raises:
        CoevoError: the module cannot be imported, or lacks it; names the setting.
    """
    return Registry[Any](setting, {}).imported(reference, reference)


def last_step(told: str, scores: Sequence[tuple[str, float]], least: float, cut: bool, valid: bool) -> Step[None]:
    """Last step of an episode whose rewards come at its end.

    Args:
        told: result of the last action.
        scores: name and value of each reward, which add up.
        least: least reward of a success.
        cut: True if a limit ended the episode.
        valid: True if the last action was understood.
    """
    total = sum(value for _, value in scores)
    success, feedback = not cut and total >= least, f"{told}\nreward {total:g}".strip()
    return Step(None, told, feedback, total, True, success, valid=valid, truncated=cut, scores=tuple(scores))


def facts_of(found: Mapping[str, Any] | EpisodeFailure, name: str) -> SimulatorFacts:
    """Check a description that came from a worker.

    Args:
        found: the description.
        name: name of the environment, for messages.

    Raises:
        ConfigError: it cannot be played.
    """
    if isinstance(found, EpisodeFailure):
        raise ConfigError(f"env.type={name}: it does not start: {found}")
    try:
        facts = SimulatorFacts.model_validate_json(json.dumps(found))
    except ValidationError as error:
        raise ConfigError(f"env.type={name}: {error.errors()[0]['msg']}") from None
    if facts.refused:
        raise ConfigError(facts.refused)
    return facts


def facts_or_refusal(found: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Facts, or the refusal that looking for them raised."""
    try:
        return found()
    except CoevoError as error:
        return {"refused": str(error)}


async def awaited(result: T | Awaitable[T]) -> T:
    """Result of a function that may be a coroutine function."""
    return await result if isawaitable(result) else result
