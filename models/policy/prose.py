"""Text of messages for pretrained policies, in one message per prompt (``chat``) or as a conversation.

Lessons are quoted, one a line. Control tokens need no care here: no content of a message can act (``encoding``).
"""

import json
from collections.abc import Sequence

from coevo.configs.context import ContextConfig
from coevo.models.answers.forms import FORMS, Form
from coevo.records.demonstration import Moment, PastTurn

SYSTEM = "You act in an environment, one action a turn."
NOTES = "Notes from earlier attempts, quoted; they may be outdated, use one only where it fits what you observe:"
_PAST = {
    "actions": "Action: {action}\nResult: {feedback}\n",
    "states": "You observed: {observation}\nAction: {action}\nResult: {feedback}\n",
}
"""Format of a previous turn, by its content."""


class Prose:
    """Messages of prompts in prose."""

    def __init__(self, config: ContextConfig, form: Form) -> None:
        self._system = f"{SYSTEM} {form.request}"
        self._calling = f"{SYSTEM} {(FORMS['call'] if config.parser == 'auto' else form).request}"
        self._past = _PAST[config.history]
        self._placement = config.placement

    def line(self, lesson: str) -> str:
        """Lesson in its block: one quoted line, for any content of the lesson."""
        return f"- {json.dumps(' '.join(lesson.split()), ensure_ascii=False)}\n"

    def messages(self, moment: Moment, lessons: str, recent: Sequence[PastTurn]) -> tuple[str, ...]:
        """System message, with the environment's guide, and user message. With tools, ``auto`` asks for a call."""
        asked = self._calling if moment.tools else self._system
        system = f"{asked}\n\n{moment.guide}" if moment.guide else asked
        notes = f"\n{NOTES}\n{lessons}" if lessons else ""
        past = "".join(self._past.format(**turn._asdict()) for turn in recent)
        history = f"\nSo far:\n{past}" if past else ""
        now = f"\nYou observe: {moment.observation}"
        task = f"Task: {moment.instruction}\n"
        if self._placement == "system":
            return (f"{system}\n{notes}" if notes else system, f"{task}{history}{now}")
        said = (history, notes) if self._placement == "turn" else (notes, history)
        return (system, f"{task}{''.join(said)}{now}")

    def following(self, feedback: str, lessons: str, observation: str) -> str:
        """Message of a conversation after an answer."""
        notes = f"\n{NOTES}\n{lessons}" if lessons else ""
        return f"Result: {feedback}\n{notes}\nYou observe: {observation}"

    def data(self, text: str) -> str:
        """Text as it is: control tokens in it do not act."""
        return text
