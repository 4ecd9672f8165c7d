"""Expert material for warm starts."""

from dataclasses import dataclass
from typing import NamedTuple


class PastTurn(NamedTuple):
    """A turn that an agent has behind it: what it saw, what it did, and what came of it."""

    observation: str
    action: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Moment:
    """What an agent knows when it is asked for a turn.

    Attributes:
        instruction: what it is asked to do.
        lessons: experience texts in its prompt, best first.
        history: the previous turns, oldest first.
        observation: what it sees now.
    """

    instruction: str
    lessons: tuple[str, ...]
    history: tuple[PastTurn, ...]
    observation: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent answers: a thought, and an action that the environment reads."""

    thought: str
    action: str


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A moment and the expert's answer to it."""

    moment: Moment
    answer: Answer
