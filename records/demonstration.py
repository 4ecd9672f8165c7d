"""Expert material for warm starts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """What an agent knows when it is asked for a turn.

    Attributes:
        instruction: what it is asked to do.
        lessons: experience texts in its prompt, best first.
        history: (action, feedback) of the previous turns, oldest first.
        observation: what it sees now.
    """

    instruction: str
    lessons: tuple[str, ...]
    history: tuple[tuple[str, str], ...]
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
