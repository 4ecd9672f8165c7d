"""Messages for pretrained policies, in one message per prompt (``chat``) or as a ``conversation``.

Lessons are quoted, one per line, with condition and example action; strategies and warnings stand under headings.
Control tokens need no care here: no content of a message can act (``encoding``).

In a conversation each prompt begins with the one before it and the tokens that were generated, and only what is new is
encoded: an observation's message, between the end of the last answer and the beginning of the next. With
``memory_length`` a prompt holds at most so many previous turns. The turn that would exceed it begins a new branch, with
the latest half of them, which later turns continue in the same way.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from coevo.configs.context_config import ContextConfig
from coevo.models.answers.forms import Form, format_of
from coevo.models.policy.encoding import TemplateEncoder
from coevo.models.policy.layout import Conversation, Deviation
from coevo.records.answer_form import CallForm, WholeForm
from coevo.records.demonstration import Moment, Note, PastTurn

SYSTEM = "You act in an environment, one action a turn."
NOTES = "Notes from earlier attempts, quoted; they may be outdated, use one only where it fits what you observe:"
HEADINGS = {"strategy": "Strategies:\n", "warning": "Warnings:\n"}
"""Heading of the lessons of each zone, in the order of a prompt (SLEA-RL, prompt A)."""
_PAST = {
    "actions": "{action}\nResult: {feedback}\n",
    "states": "You observed: {observation}\n{action}\nResult: {feedback}\n",
}
"""Format of a previous turn, by its content."""


class Prose:
    """Messages of prompts in prose."""

    def __init__(self, config: ContextConfig) -> None:
        self._parser = config.parser
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
        shown = (turn._replace(action=self._past_action(moment, turn.action)) for turn in recent)
        past = "".join(self._past.format(**turn._asdict()) for turn in shown)
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

    def _past_action(self, moment: Moment, action: str) -> str:
        """An earlier action, in the form of the environment where that shows where it begins and ends."""
        is_plain = moment.form is None or isinstance(moment.form, WholeForm | CallForm)
        if not action or is_plain or self._parser != "auto":
            return f"Action: {action}"
        return self._form(moment).without_thought(action)

    def _form(self, moment: Moment) -> Form:
        return format_of(self._parser, moment.form, bool(moment.tools))


def _repeats(condition: str, lesson: str, instruction: str) -> bool:
    """True if the lesson or the instruction already says what a condition says, as an empty one."""
    return _words(condition) <= _words(lesson) or _spaced(condition) in _spaced(instruction)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return json.dumps(_spaced(text), ensure_ascii=False)


def branch_of(count: int, limit: int | None) -> tuple[int, int]:
    """Branch of the prompt after ``count`` turns.

    Args:
        count: number of previous turns.
        limit: maximum number of previous turns in a prompt; None for any.

    Returns:
        Number of the turn that began the branch, and of the first turn that its prompts hold.
    """
    if limit is None or count <= limit:
        return 0, 0
    kept = limit // 2
    length = limit - kept + 1
    began = limit + 1 + (count - limit - 1) // length * length
    return began, began - kept


class Dialogue:
    """Writer of a conversation's prompts."""

    def __init__(self, layout: Conversation, encoder: TemplateEncoder, prose: Prose, limit: int | None) -> None:
        self._layout, self._encoder, self._prose, self._limit = layout, encoder, prose, limit
        self._end = encoder.split(layout.following.fixed[0])[0]

    @property
    def deviations(self) -> frozenset[Deviation]:
        """Differences of its prompts from the template's rendering of the same messages."""
        return self._layout.deviations

    def prompt(self, moment: Moment, lessons: str) -> tuple[int, ...]:
        """Token ids of the next prompt.

        Turns that the policy did not play in this process, as an agent's that is served, are rendered from their
        actions.

        Args:
            moment: content of the prompt.
            lessons: block of the lessons that the conversation does not hold yet.
        """
        count = len(moment.history)
        began, first = branch_of(count, self._limit)
        if moment.played and count > began:
            return (*moment.played[-1].prompt_ids, *self._next(moment, count, lessons))
        return self._branch(moment, first, lessons)

    def _branch(self, moment: Moment, first: int, lessons: str) -> tuple[int, ...]:
        """Prompt that begins with a turn; the block of lessons stands in its opening."""
        seen = [*(turn.observation for turn in moment.history), moment.observation][first]
        start = replace(moment, lessons=(), history=(), observation=seen, played=())
        opening = self._layout.opening.parts(self._encoder, self._prose.messages(start, lessons, ()))
        later = (self._next(moment, number, "") for number in range(first + 1, len(moment.history) + 1))
        return (*self._encoder.ids(opening), *(index for ids in later for index in ids))

    def _next(self, moment: Moment, number: int, lessons: str) -> tuple[int, ...]:
        """Token ids of the answer before a turn, and from its end to the beginning of the next."""
        past = moment.history[number - 1]
        seen = [*(turn.observation for turn in moment.history[number:]), moment.observation][0]
        content = self._prose.following(past.feedback, lessons, seen)
        answer = self._answer(moment, number - 1)
        following = self._encoder.ids(self._layout.following.parts(self._encoder, [content]))
        return (*answer, *(following[1:] if answer[-1:] == (self._end,) else following))

    def _answer(self, moment: Moment, number: int) -> Sequence[int]:
        if moment.played:
            return moment.played[number].completion.token_ids
        return self._encoder.data(self._prose.answer(moment, moment.history[number].action))
