"""Interface of every writer model: questions in, replies out as they arrive, and replies without an answer."""

import sys
from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from coevo.records.writing import Question, QuestionRoom, Reply
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.models.writer_models.request_pace import Traffic

BATCH = 16
"""Maximum number of questions that an engine answers at once: their prompts are long, and all are kept in memory."""


class WriterModel(Protocol):
    """Language model that answers the questions of a writer."""

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question; yield its place and its reply as soon as it arrives, in any order.

        A question that cannot be answered gets a reply with a ``fault``; nothing is raised for it. Closing the
        iterator abandons the questions that are not answered yet.
        """
        ...

    def close(self) -> None:
        """End everything that the writer model has started."""
        ...


@runtime_checkable
class Measuring(Protocol):
    """Writer model that knows how long a question may be."""

    def room(self) -> QuestionRoom:
        """Room of a question before the longest answer, as the writer model counts tokens.

        Raises:
            CoevoError: the model cannot be read.
        """
        ...


def room_of(writer_model: WriterModel) -> QuestionRoom:
    """Room of a question; unbounded where the writer model does not know it, or its model cannot be read."""
    try:
        return writer_model.room() if isinstance(writer_model, Measuring) else QuestionRoom(sys.maxsize)
    except CoevoError:
        return QuestionRoom(sys.maxsize)  # a question will be told why nobody answers it


@runtime_checkable
class Requesting(Protocol):
    """Writer model that counts its requests, as a dataclass of counts."""

    traffic: "Traffic"


def traffic_of(writer_model: WriterModel) -> dict[str, int]:
    """Counts of the requests of a writer model so far, by name; empty for one that sends none."""
    return asdict(writer_model.traffic) if isinstance(writer_model, Requesting) else {}


def in_order(writer_model: WriterModel, questions: Sequence[Question]) -> list[Reply]:
    """Reply to each question, in the order of the questions."""
    replies = dict(writer_model.replies(questions))
    return [replies[index] for index in range(len(questions))]


def failed(fault: str, prompt_tokens: int = 0, answer_tokens: int = 0) -> Reply:
    """Reply without an answer.

    Args:
        fault: reason, on one line.
        prompt_tokens: tokens of the prompt, 0 if unknown.
        answer_tokens: tokens that were generated all the same.
    """
    return Reply("", False, prompt_tokens, answer_tokens, fault)
