"""The artifact of a revision's writing.

writing/answers.jsonl    answers that arrived in the revision, or that a later firing may need
writing/rejects.jsonl    parts of answers that were refused in the revision
writing/spent.json       questions and tokens of the run so far
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coevo.configs.errors import CoevoError
from coevo.memory.writers.base import Reject
from coevo.tasks.writing.journal import Answered, parse
from coevo.tasks.writing.spent import Spent

FOLDER, ANSWERS, REJECTS, SPENT = "writing", "answers.jsonl", "rejects.jsonl", "spent.json"
"""Names of the artifact and of its files."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Part of the writing that a revision keeps.

    Attributes:
        answers: answers that arrived in it, or that a later firing may need.
        spent: expense of the run so far.
        rejects: parts of answers that were refused in it.
    """

    answers: tuple[Answered, ...] = ()
    spent: Spent = field(default_factory=Spent)
    rejects: tuple[Reject, ...] = ()


def write_writing(kept: Kept, staging: Path) -> None:
    """Stage the writing for the commit."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    _write(directory / ANSWERS, (answer.line() for answer in kept.answers))
    _write(directory / REJECTS, (json.dumps(asdict(reject), sort_keys=True) for reject in kept.rejects))
    _write(directory / SPENT, [json.dumps(asdict(kept.spent), sort_keys=True)])


def read_writing(directory: Path | None) -> Kept:
    """Part of the writing that the last revision keeps, without its refused parts; nothing for None.

    Raises:
        CoevoError: a file is not as coevo writes it.
    """
    if directory is None:
        return Kept()
    try:
        texts = {name: (directory / name).read_text(encoding="utf-8") for name in (ANSWERS, SPENT)}
    except (OSError, ValueError) as error:
        raise CoevoError(f"the artifact {FOLDER} cannot be read: {error}") from None
    return Kept(tuple(parse(line) for line in texts[ANSWERS].split("\n") if line), _spent(texts[SPENT]))


def _spent(text: str) -> Spent:
    try:
        found = json.loads(text)
        if all(type(number) is int and number >= 0 for number in found.values()):
            return Spent(**found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise CoevoError(f"{SPENT} of the artifact {FOLDER} is not as coevo writes it")


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
