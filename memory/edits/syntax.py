"""The fixed syntax of edit operations (JERP section IV-D): one per line, with arguments as JSON.

ADD("blue mug in safe")
EDIT("3f2a9c01b7de", "blue mug in drawer")
UPVOTE("3f2a9c01b7de")
DOWNVOTE("3f2a9c01b7de")
MERGE(["3f2a9c01b7de", "81c0ffee01b2"], "blue mug in drawer")
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from coevo.memory.text import LONGEST, content_words
from coevo.records.inert import flaw

OperationKind = Literal["ADD", "EDIT", "UPVOTE", "DOWNVOTE", "MERGE"]
KINDS: tuple[OperationKind, ...] = get_args(OperationKind)

LONGEST_LINE = 4096
"""Most characters of a line; the longest text takes less, however it is escaped."""

_LINE = re.compile(rf"\s*({'|'.join(KINDS)})\s*\((.*)\)\s*")


class RefusedError(ValueError):
    """An operation that cannot be applied; the message gives the reason on one line."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One edit operation.

    Attributes:
        kind: kind of the operation.
        targets: ids of the entries concerned, without repetition; empty for ADD.
        text: new wording; empty for votes.
    """

    kind: OperationKind
    targets: tuple[str, ...] = ()
    text: str = ""

    def line(self) -> str:
        """Format the operation; ``parse`` reads it back."""
        target: list[Any] = [list(self.targets)] if self.kind == "MERGE" else list(self.targets)
        arguments = [*target, self.text] if self.text else target
        return f"{self.kind}({', '.join(json.dumps(argument, ensure_ascii=False) for argument in arguments)})"


def parse(line: str) -> Operation:
    """Parse one line.

    Raises:
        RefusedError: the line is not an operation, or no pool could accept its text.
    """
    if len(line) > LONGEST_LINE:
        raise RefusedError(f"is longer than {LONGEST_LINE} characters")
    found = _LINE.fullmatch(line)
    if found is None:
        raise RefusedError(f"is no operation: there are {', '.join(KINDS)}, each with its arguments in parentheses")
    return _FORMS[cast(OperationKind, found[1])](_arguments(found[2]))


def _arguments(text: str) -> list[Any]:
    try:
        return cast(list[Any], json.loads(f"[{text}]"))
    except (ValueError, RecursionError):
        raise RefusedError("has arguments that are not JSON: ids and text stand in double quotes") from None


def _add(arguments: list[Any]) -> Operation:
    match arguments:
        case [str(text)]:
            return Operation("ADD", (), _wording(text))
    raise RefusedError("does not fit ADD(text)")


def _edit(arguments: list[Any]) -> Operation:
    match arguments:
        case [str(target), str(text)]:
            return Operation("EDIT", (target,), _wording(text))
    raise RefusedError("does not fit EDIT(id, text)")


def _vote(kind: OperationKind) -> Callable[[list[Any]], Operation]:
    def read(arguments: list[Any]) -> Operation:
        match arguments:
            case [str(target)]:
                return Operation(kind, (target,))
        raise RefusedError(f"does not fit {kind}(id)")

    return read


def _merge(arguments: list[Any]) -> Operation:
    match arguments:
        case [list(targets), str(text)] if all(isinstance(target, str) for target in targets):
            different = tuple(dict.fromkeys(targets))
            if len(different) < 2:
                raise RefusedError(f"merges {len(different)}: two or more different entries can be merged")
            return Operation("MERGE", different, _wording(text))
    raise RefusedError("does not fit MERGE([id, id, ...], text)")


_FORMS: Mapping[OperationKind, Callable[[list[Any]], Operation]] = {
    "ADD": _add,
    "EDIT": _edit,
    "UPVOTE": _vote("UPVOTE"),
    "DOWNVOTE": _vote("DOWNVOTE"),
    "MERGE": _merge,
}


def _wording(text: str) -> str:
    """Normalize blanks of a text; refuse texts that are not valid in an entry."""
    problem = flaw(text)
    if problem is not None:
        raise RefusedError(f"has a text that {problem}")
    line = " ".join(text.split())
    if len(line) > LONGEST:
        raise RefusedError(f"has a text of {len(line)} characters: {LONGEST} are the most")
    if not content_words(line):
        raise RefusedError("has a text that says nothing")
    return line
