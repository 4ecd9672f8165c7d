"""The journal of a writer model's answers, beside the staging area: each is appended as it arrives.

A run that was killed asks only for what is missing. A line has the revision in the making, the purpose, the task and
the episodes of the question, its digest, and the reply. A reply with a fault is there for its expense alone.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coevo.lineage.atomic_files import write_atomically
from coevo.records.writing import Drawn, Question, Reply
from coevo.utilities.errors import CoevoError
from coevo.utilities.line_file import append_line

MAX_TOKEN_ID = 2**31
"""Bound of token ids."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that is kept.

    Attributes:
        revision: revision that was made when it arrived.
        purpose: prompt that asked.
        task: id of the task of the question; empty for several.
        episodes: ids of the episodes that the question showed.
        digest: of the question and of the writer model's settings.
        reply: the answer.
    """

    revision: int
    purpose: str
    task: str
    episodes: tuple[str, ...]
    digest: str
    reply: Reply

    @classmethod
    def of(cls, revision: int, question: Question, digest: str, reply: Reply) -> "Answered":
        """The answer to a question."""
        return cls(revision, question.purpose, question.task, question.episodes, digest, reply)

    def line(self) -> str:
        """The answer as one line of JSON; ``parse`` reads it back."""
        fields = asdict(self)
        if self.reply.drawn is None:
            del fields["reply"]["drawn"]
        return json.dumps(fields, sort_keys=True)


def parse(line: str) -> Answered:
    """Inverse of ``Answered.line``.

    Raises:
        CoevoError: the line is something else.
    """
    try:
        found = json.loads(line)
        drawn = found["reply"].pop("drawn", None)
        reply = Reply(**found.pop("reply"), drawn=None if drawn is None else drawn_of(drawn))
        answered = Answered(**found | {"episodes": tuple(found["episodes"])}, reply=reply)
        if json.loads(answered.line()) == json.loads(line) and _typed(answered):
            return answered
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise CoevoError(f"{line[:60]!r} is not an answer as coevo writes it")


def drawn_of(fields: Mapping[str, Any]) -> Drawn:
    """Tokens of an answer from the fields of their JSON.

    Raises:
        ValueError: a field is empty, or is not a list of token ids.
        TypeError, KeyError: likewise.
    """
    drawn = Drawn(tuple(fields["prompt_ids"]), tuple(fields["token_ids"]))
    ids = (*drawn.prompt_ids, *drawn.token_ids)
    if drawn.prompt_ids and drawn.token_ids and all(type(one) is int and 0 <= one < MAX_TOKEN_ID for one in ids):
        return drawn
    raise ValueError("the tokens of an answer are token ids")


def _typed(answered: Answered) -> bool:
    """Report whether the fields have their types, which JSON alone does not ensure."""
    reply, texts = answered.reply, (answered.purpose, answered.task, answered.digest, *answered.episodes)
    numbers = (answered.revision, reply.prompt_tokens, reply.answer_tokens)
    return (
        all(isinstance(text, str) for text in (*texts, reply.text, reply.fault))
        and all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(reply.finished, bool)
    )


class Journal:
    """Answers that no commit holds yet, in a file that is only appended to."""

    def __init__(self, path: Path, revision: int, committed: Callable[[int], bool] = lambda _: True) -> None:
        """Open the journal of the revision in the making; answers that earlier revisions keep go.

        Args:
            path: the file.
            revision: number of the revision in the making.
            committed: True for an earlier revision that keeps its answers; others become those of ``revision``.
        """
        self._path = path
        kept = [found for found in _read(path) if found.revision == revision or not committed(found.revision)]
        self.answers = [replace(found, revision=revision) for found in kept]
        self._write(self.answers)

    def append(self, answered: Answered) -> None:
        """Write one answer to the disk."""
        append_line(self._path, answered.line())
        self.answers.append(answered)

    def drop(self, before: int) -> None:
        """Drop the answers of the revisions before this one."""
        kept = [found for found in self.answers if found.revision >= before]
        if len(kept) < len(self.answers):
            self.answers = kept
            self._write(kept)

    def _write(self, answers: Iterable[Answered]) -> None:
        if text := "".join(f"{each.line()}\n" for each in answers):
            write_atomically(self._path, text)
        else:
            self._path.unlink(missing_ok=True)


def _read(path: Path) -> list[Answered]:
    """Answers of a journal; a last line without its end was cut off by the death of its process."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")
    try:
        return [parse(line) for line in whole.split("\n") if line]
    except CoevoError as error:
        raise CoevoError(f"{path}: {error}: remove the file, and its questions are asked again") from None
