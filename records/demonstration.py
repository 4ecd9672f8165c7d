"""Expert material for warm starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coevo.records.answer_form import AnswerForm
from coevo.records.entry import Entry
from coevo.records.episode import Turn


class Note(NamedTuple):
    """A lesson as a prompt may show it.

    Attributes:
        text: the lesson.
        condition: situation in which it applies, and in which it does not; empty if its writer gave none.
        example: an example action; empty if its writer gave none.
        zone: heading that it stands under, one of ``ZONES``.
    """

    text: str
    condition: str = ""
    example: str = ""
    zone: str = "strategy"

    @classmethod
    def of(cls, entry: Entry) -> "Note":
        """The texts of an entry that are for its reader; its keywords are for retrieval."""
        return cls(entry.strategy, entry.condition, entry.example, entry.zone)


class PastTurn(NamedTuple):
    """A past turn of an agent: observation, action, feedback."""

    observation: str
    action: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Knowledge of an agent when it chooses an action.

    Attributes:
        instruction: the task in words.
        lessons: experience in its prompt, best first.
        history: the previous turns, oldest first.
        observation: the current observation.
        guide: how to act in this environment, in words; empty if the environment does not say.
        tools: tools that the environment offers, as JSON schemas of functions.
        played: the previous turns with their tokens, if the agent is a policy that played them.
        form: form of the answer, as the environment names it; None if it names none.
    """

    instruction: str
    lessons: tuple[Note, ...]
    history: tuple[PastTurn, ...]
    observation: str
    guide: str = ""
    tools: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    played: tuple[Turn, ...] = ()
    form: AnswerForm | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An agent's answer: a thought, and an action that the environment parses.

    Attributes:
        thought: text before the action, without the thinking of a reasoning model.
        action: action in one of the environment's forms; empty if there is none.
        fault: reason why there is none, a ``Fault``; empty if there is one, or if the format has no faults (``words``).
    """

    thought: str
    action: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A moment and the expert's answer to it."""

    moment: Moment
    answer: Answer
