"""Text of messages for pretrained policies, in one message per prompt (``chat``) or as a conversation.

Lessons are quoted, one per line, with condition and example action; strategies and warnings stand under headings.
Control tokens need no care here: no content of a message can act (``encoding``).
"""

import json
import re
from collections.abc import Sequence

from coevo.configs.context_config import ContextConfig
from coevo.models.answers.forms import FORMS, Form
from coevo.records.demonstration import Moment, Note, PastTurn

SYSTEM = "You act in an environment, one action a turn."
NOTES = "Notes from earlier attempts, quoted; they may be outdated, use one only where it fits what you observe:"
HEADINGS = {"strategy": "Strategies:\n", "warning": "Warnings:\n"}
"""Heading of the lessons of each zone, in the order of a prompt (SLEA-RL, prompt A)."""
_PAST = {
    "actions": "Action: {action}\nResult: {feedback}\n",
    "states": "You observed: {observation}\nAction: {action}\nResult: {feedback}\n",
}
"""Format of a previous turn, by its content."""


class Prose:
    """Messages of prompts in prose."""

    def __init__(self, config: ContextConfig, form: Form) -> None:
        self._forms = {True: FORMS["call"] if config.parser == "auto" else form, False: form}
        self._past = _PAST[config.history]
        self._placement = config.placement

    def line(self, note: Note, instruction: str) -> str:
        """Lesson, its condition and its example action in one line of quotes, for any content of the three.

        A condition is left out where it costs tokens and tells nothing: all its words stand in the lesson, or it quotes
        the instruction. The conditions of rules that quote feedback are such words. So is an example that the lesson
        quotes.
        """
        parts = [_quoted(note.text)]
        if not _repeats(note.condition, note.text, instruction):
            parts.append(f"applies when: {_quoted(note.condition)}")
        if _spaced(note.example) not in _spaced(note.text):
            parts.append(f"example action: {_quoted(note.example)}")
        return f"- {'; '.join(parts)}\n"

    def heading(self, zone: str) -> str:
        """Heading that lessons of a zone stand under."""
        return HEADINGS[zone]

    def block(self, lines: Sequence[tuple[str, str]]) -> str:
        """Lines with their zones, best first, under the headings of their zones."""
        zones = {zone: [line for found, line in lines if found == zone] for zone in HEADINGS}
        return "".join(f"{HEADINGS[zone]}{''.join(found)}" for zone, found in zones.items() if found)

    def messages(self, moment: Moment, lessons: str, recent: Sequence[PastTurn]) -> tuple[str, ...]:
        """System message, with the environment's guide, and user message. With tools, ``auto`` asks for a call."""
        asked = f"{SYSTEM} {self._form(moment).request}"
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

    def answer(self, moment: Moment, action: str) -> str:
        """Answer of an earlier turn, known by its action, in the form that the system message asks for."""
        return self._form(moment).without_thought(action)

    def data(self, text: str) -> str:
        """Text as it is: control tokens in it do not act."""
        return text

    def _form(self, moment: Moment) -> Form:
        return self._forms[bool(moment.tools)]


def _repeats(condition: str, lesson: str, instruction: str) -> bool:
    """True if the lesson or the instruction already says what a condition says, as an empty one."""
    return _words(condition) <= _words(lesson) or _spaced(condition) in _spaced(instruction)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return json.dumps(_spaced(text), ensure_ascii=False)
