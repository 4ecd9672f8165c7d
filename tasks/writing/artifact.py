"""The artifact of a revision's writing.

writing/answers.jsonl    answers that arrived in the revision, or that a later firing may need
writing/rejects.jsonl    parts of answers that were refused in the revision
writing/spent.json       questions and tokens of the run so far
writing/rewarded.jsonl   answers that the next update learns from; absent without any
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path

from coevo.memory.writers.writer import Reject
from coevo.records.writing import Credit, Rewarded
from coevo.tasks.writing.journal import Answered, drawn_of, parse
from coevo.tasks.writing.spent import QuestionExpense
from coevo.utilities.errors import CoevoError

FOLDER, ANSWERS, REJECTS, SPENT = "writing", "answers.jsonl", "rejects.jsonl", "spent.json"
REWARDED = "rewarded.jsonl"
"""Names of the artifact and of its files."""


@dataclass(frozen=True, slots=True)
class KeptWriting:
    """Part of the writing that a revision keeps.

    Attributes:
        answers: answers that arrived in it, or that a later firing may need.
        spent: expense of the run so far.
        rejects: parts of answers that were refused in it.
        rewarded: answers of the policy that the next update learns from.
    """

    answers: tuple[Answered, ...] = ()
    spent: QuestionExpense = field(default_factory=QuestionExpense)
    rejects: tuple[Reject, ...] = ()
    rewarded: tuple[Rewarded, ...] = ()


def write_writing(kept: KeptWriting, staging: Path) -> None:
    """Stage the writing for the commit."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    _write(directory / ANSWERS, (answer.line() for answer in kept.answers))
    _write(directory / REJECTS, (json.dumps(asdict(reject), sort_keys=True) for reject in kept.rejects))
    _write(directory / SPENT, [json.dumps(asdict(kept.spent), sort_keys=True)])
    if kept.rewarded:
        _write(directory / REWARDED, (json.dumps(asdict(each), sort_keys=True) for each in kept.rewarded))


def read_writing(directory: Path | None) -> KeptWriting:
    """Part of the writing that the last revision keeps, without its refused parts; nothing for None.

    Raises:
        CoevoError: a file is not as coevo writes it.
    """
    if directory is None:
        return KeptWriting()
    texts = _texts(directory)
    answers = tuple(parse(line) for line in texts[ANSWERS].split("\n") if line)
    rewarded = tuple(_rewarded(line) for line in texts.get(REWARDED, "").split("\n") if line)
    return KeptWriting(answers, _spent(texts[SPENT]), rewarded=rewarded)


def read_rejects(file: Path) -> list[Reject]:
    """Refused parts of a revision's answers.

    Raises:
        CoevoError: the file is not as coevo writes it.
    """
    try:
        return [_reject(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise CoevoError(f"{REJECTS} of the artifact {FOLDER} is not as coevo writes it") from None


def _reject(line: str) -> Reject:
    found = json.loads(line)
    made = Reject(**found | {"episodes": tuple(found["episodes"])})
    if all(isinstance(text, str) for text in (made.purpose, made.reason, made.text, *made.episodes)):
        return made
    raise ValueError(line)


def _texts(directory: Path) -> dict[str, str]:
    """Content of the files that are read back, by name."""
    try:
        found = [name for name in (ANSWERS, SPENT, REWARDED) if name != REWARDED or (directory / name).exists()]
        return {name: (directory / name).read_text(encoding="utf-8") for name in found}
    except (OSError, ValueError) as error:
        raise CoevoError(f"the artifact {FOLDER} cannot be read: {error}") from None


def _rewarded(line: str) -> Rewarded:
    try:
        found = json.loads(line)
        earned = tuple(Credit(**credit) for credit in found["credits"])
        made = Rewarded(**found | {"drawn": drawn_of(found["drawn"]), "credits": earned})
        if _sound(made):
            return made
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise CoevoError(f"{REWARDED} of the artifact {FOLDER} is not as coevo writes it")


def _sound(made: Rewarded) -> bool:
    """Report whether weight and rewards are numbers, and each part lies within the answer."""
    numbers = (made.weight, *(credit.reward for credit in made.credits))
    places = [position for credit in made.credits for position in (credit.start, credit.end)]
    whole = all(type(number) is float and isfinite(number) for number in numbers)
    inside = all(type(position) is int and 0 <= position <= len(made.drawn.token_ids) for position in places)
    return whole and inside and places == sorted(places)


def _spent(text: str) -> QuestionExpense:
    try:
        found = json.loads(text)
        if all(type(number) is int and number >= 0 for number in found.values()):
            return QuestionExpense(**found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise CoevoError(f"{SPENT} of the artifact {FOLDER} is not as coevo writes it")


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
