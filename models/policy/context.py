"""The prompt context: converts a moment to token ids, and parses the policy's text as an answer.

Instruction and lessons come before history and observation: the rollouts of a group share that head of the prompt,
turn after turn. With ``placement: system`` lessons stand in the system message, and the user's message is the same,
token by token, with lessons and without (format-preserving augmentation, SLEA-RL Eq. 8). With ``placement: turn`` they
stand before the current observation, and in a conversation in the message in which they were first shown.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import compress
from threading import Lock
from typing import Any
from unicodedata import category

from coevo.configs.context_config import ContextConfig
from coevo.models.answers.forms import WORDS, Form, format_of
from coevo.models.answers.read import Reader, read_words
from coevo.models.answers.thinking import opens_thinking
from coevo.models.policy.chat_prompt import NOTES, Dialogue, Prose, branch_of
from coevo.models.policy.encoding import TemplateEncoder
from coevo.models.policy.ends import template_end
from coevo.models.policy.layout import Deviation, Layout
from coevo.models.policy.template import render
from coevo.models.policy.tokenizers import ROLES
from coevo.records.answer_form import AnswerForm
from coevo.records.demonstration import Answer, Moment, Note, PastTurn
from coevo.records.entry import Entry
from coevo.records.episode import Completion, Turn
from coevo.records.inert import COMMON, control_tokens, either, inert, whole_words

__all__ = ["CONTEXT_WORDS", "Context"]
TOOLS = "Tools, as JSON schemas:"
"""Heading of the tools in the system's text, for templates that do not declare them."""
MARK = "\n[... {count} tokens are left out ...]\n"
"""Text in place of what was left out."""
JOINER, MAX_MARKS = "\u200d", 16
JOINED = (("\u1160", "\u11ff"), ("\U0001f3fb", "\U0001f3ff"))
"""Characters that belong to the one before them: parts of Korean syllables, and colours of emoji."""
WIDEST = 16
"""Characters per token up to which a head or tail is looked for."""
MARKERS = ("lessons", "recent", ">", ":", "think", "act")
"""Words that begin a block, or a part of a turn."""
CONTEXT_WORDS = (*MARKERS, ".")
"""Words that the style adds to an environment's vocabulary."""
_STRUCTURE = whole_words((*ROLES, *MARKERS))
_PAST = {"actions": " > {action} : {feedback}", "states": " > {observation} : {action} : {feedback}"}
"""Format of a previous turn, by its content."""


class Terse:
    """Messages of one tokenizer's prompts, in words."""

    def __init__(self, config: ContextConfig, tokenizer: Any) -> None:
        self._own = control_tokens(_special_tokens(tokenizer))
        self._control = either(self._own, COMMON)
        self._markers = either(self._control, _STRUCTURE)
        self._past = _PAST[config.history]
        self._leads = config.placement == "system"

    def line(self, note: Note, instruction: str) -> str:
        """Lesson in its block, without the words that end that; condition and example are never shown."""
        return f" . {inert(note.text, self._markers)}"

    def heading(self, zone: str) -> str:
        """Heading of a zone: none, since all lessons stand in one list."""
        return ""

    def block(self, lines: Sequence[tuple[str, str]]) -> str:
        """Lines with their zones as one list, in their order."""
        return "".join(line for _, line in lines)

    def messages(self, moment: Moment, lessons: str, recent: Sequence[PastTurn]) -> tuple[str, ...]:
        """System message, if lessons stand there, and user message; the block may be empty, but is never missing."""
        block = f"lessons{lessons} ."
        past = "".join(self._past.format(**turn._asdict()) for turn in recent)
        now = f"recent{self.data(past)} . {self.data(moment.observation)} ."
        task = f"{self.data(moment.instruction)} ."
        said = (block, f"{task} {now}") if self._leads else (f"{task} {block} {now}",)
        # Parts could join to form a control token.
        return tuple(inert(content, self._own) for content in said)

    def data(self, text: str) -> str:
        """Text without control tokens."""
        return inert(text, self._control)


class Shortener:
    """Shortens the observations and the feedback of prompts to a number of tokens.

    Args:
        limit: maximum tokens of an observation; None for any.
        cost: number of tokens of a text.
    """

    def __init__(self, limit: int | None, cost: Callable[[str], int]) -> None:
        self._limit = limit
        self._cost = cost
        self._short = lru_cache(maxsize=512)(self._cut)

    def moment(self, moment: Moment) -> Moment:
        """A moment with short observations, past ones included."""
        if self._limit is None:
            return moment
        past = (PastTurn(self.text(turn.observation), turn.action, self.text(turn.feedback)) for turn in moment.history)
        return replace(moment, history=tuple(past), observation=self.text(moment.observation))

    def text(self, text: str) -> str:
        """A text, shortened if it exceeds the limit."""
        return text if self._limit is None or len(text.encode(errors="replace")) <= self._limit else self._short(text)

    def _cut(self, text: str) -> str:
        limit = self._limit or 0
        total, room = self._cost(text), limit
        if total <= limit:
            return text
        while room > 0:
            head = self._longest(text, room - room // 2)
            tail = self._longest(text[len(head) :], room // 2, ends=True)
            left = total - self._cost(head) - self._cost(tail)
            short = f"{head}{MARK.format(count=left)}{tail}"
            over = self._cost(short) - limit
            if over <= 0:
                return short
            room -= over
        return self._longest(text, limit)

    def _longest(self, text: str, room: int, ends: bool = False) -> str:
        """Longest beginning, or end, of a text that has at most ``room`` tokens."""
        low, high = 0, min(len(text), room * WIDEST)
        while low < high:
            middle = (low + high + 1) // 2
            part = text[len(text) - middle :] if ends else text[:middle]
            low, high = (middle, high) if self._cost(part) <= room else (low, middle - 1)
        return text[_between(text, len(text) - low, 1) :] if ends else text[: _between(text, low, -1)]


def _between(text: str, at: int, step: int) -> int:
    """The place ``at``, or one a few steps on that parts no character from its marks, no emoji and no syllable."""
    places = range(at, at + step * MAX_MARKS, step)
    return next((place for place in places if not _parts(text, place)), at)


def _parts(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    here = text[at]
    return (
        JOINER in text[at - 1 : at + 1] or category(here)[0] == "M" or any(low <= here <= high for low, high in JOINED)
    )


class Context:
    """Writer of prompts and parser of answers for one tokenizer.

    Attributes:
        invalid_limit: number of unusable answers in a row that ends an episode; None never does.
        leads: True if lessons come before everything else, so that prompts with other lessons share no prefix.
    """

    def __init__(self, config: ContextConfig, tokenizer: Any) -> None:
        self._config = config
        self.invalid_limit = config.invalid_limit
        self._tokenizer = tokenizer
        self._encoder = TemplateEncoder(tokenizer)
        self._words = config.style == "words"
        self._prose = Prose(config)
        self._style = Terse(config, tokenizer) if self._words else self._prose
        self._continues = config.style == "conversation"
        self.leads = config.placement == "system" and not self._continues
        self._cost = lru_cache(maxsize=4096)(lambda line: len(self._encoder.data(line)))
        self._line = lru_cache(maxsize=4096)(self._style.line)
        self._shortener = Shortener(config.observation_tokens, lambda text: len(self._encoder.data(text)))
        self._writing = Lock()
        self._lines = lru_cache(maxsize=4096)(self._fitting)
        self._dialogue = lru_cache(maxsize=64)(self._dialogue_of)
        self._declares = lru_cache(maxsize=64)(self._declared)
        self._piece = lru_cache(maxsize=64)(lambda roles, tools: self._layout(tools).prompt(roles))

    def prompt(self, moment: Moment) -> tuple[int, ...]:
        """Token ids of the whole prompt, up to the beginning of the answer; one thread writes at a time.

        Raises:
            CoevoError: the tokenizer's chat template cannot be used.
        """
        with self._writing:
            return self._prompt(moment)

    def _prompt(self, moment: Moment) -> tuple[int, ...]:
        lessons, tools = self._block(moment.lessons, moment.instruction), json.dumps(moment.tools)
        moment = self._naming_tools(self._shortener.moment(moment), tools)
        if self._continues:
            return self._dialogue(tools).prompt(moment, lessons)
        count, length = len(moment.history), self._config.memory_length
        recent = moment.history if length is None else moment.history[max(0, count - length) :]
        messages = self._style.messages(moment, lessons, recent)
        piece = self._piece(("system", "user")[-len(messages) :], tools)
        return self._encoder.ids(piece.parts(self._encoder, messages))

    def _naming_tools(self, moment: Moment, tools: str) -> Moment:
        """The moment, with its tools in the guide if the chat template does not declare them."""
        if self._words or not moment.tools or self._declares(tools):
            return moment
        listed = "\n".join(json.dumps(dict(tool), ensure_ascii=False) for tool in moment.tools)
        return replace(moment, guide=f"{moment.guide}\n\n{TOOLS}\n{listed}".strip())

    def _declared(self, tools: str) -> bool:
        """True if the chat template writes tools."""
        asked = [{"role": "user", "content": ""}]
        bare, full = (render(self._tokenizer, asked, self._config.template, each) for each in ((), json.loads(tools)))
        return bare != full

    def deviations(self, tools: Sequence[Mapping[str, Any]] = ()) -> tuple[str, ...]:
        """Differences of a conversation's prompts from what the template renders, one sentence each, in fixed order.

        Args:
            tools: tools that the prompts declare.

        Returns:
            No sentence for prompts of the other styles, which are what the template renders.
        """
        found = self._dialogue(json.dumps(tools)).deviations if self._continues else frozenset()
        return tuple(str(each) for each in Deviation if each in found)

    def _format(self, form: AnswerForm | None, with_tools: bool) -> Form:
        return WORDS if self._words else format_of(self._config.parser, form, with_tools)

    def target(self, answer: Answer, form: AnswerForm | None = None) -> tuple[int, ...]:
        """Token ids of an expert's answer in a form, including the end token: the chat template's, if it has one."""
        text = self._style.data(self._format(form, False).write(answer))
        return (*self._encoder.data(text), self._end)

    def answer_tokens(self, action: str, moment: Moment) -> int:
        """Number of tokens of an answer with an action and no thought, including the end token.

        Args:
            action: text of the action; a call where the moment has tools.
            moment: moment that it answers.
        """
        form = self._format(moment.form, bool(moment.tools))
        text = form.write(Answer("", action)) if self._words else form.without_thought(action)
        return len(self._encoder.data(self._style.data(text))) + 1

    @cached_property
    def _end(self) -> int:
        end = None if self._words else template_end(self._tokenizer, self._config.template)
        return int(self._tokenizer.eos_token_id if end is None else end)

    def read(self, completion: Completion, moment: Moment) -> Answer:
        """Parse a completion that answers the prompt of a moment; without an action, the answer has its fault."""
        if self._words:
            return read_words(completion.text)
        parser = self._config.parser
        reader = Reader(moment.form if parser == "auto" and moment.form else parser, moment.tools, self._thinking)
        return reader.read(completion.text, completion.finished)

    @cached_property
    def _thinking(self) -> bool:
        """True if the chat template's prompts end within thinking."""
        return opens_thinking(render(self._tokenizer, [{"role": "user", "content": ""}], self._config.template))

    def gives_up(self, usable: Iterable[bool]) -> bool:
        """Report whether so many unusable answers in a row as ``invalid_limit`` end an episode.

        Args:
            usable: for each answer so far, whether it holds an action; not read without a limit.
        """
        limit = self.invalid_limit
        if limit is None:
            return False
        latest = deque(usable, maxlen=limit)
        return len(latest) == limit and not any(latest)

    def shown(self, entries: Sequence[Entry], instruction: str) -> tuple[Entry, ...]:
        """Entries, best first, that fit the budget of a task's prompt; a prompt leaves out the others."""
        return tuple(compress(entries, self._lines(tuple(map(Note.of, entries)), instruction)))

    def unread(self, entries: Sequence[Entry], turns: Sequence[Turn]) -> tuple[Entry, ...]:
        """Entries that the prompt after these turns has to show: those that its conversation does not hold yet."""
        if not self._continues:
            return tuple(entries)
        began, _ = branch_of(len(turns), self._config.memory_length)
        held = {name for turn in turns[began:] for name in turn.retrieved}
        return tuple(entry for entry in entries if entry.id not in held)

    def lessons(self, entries: Sequence[Entry], instruction: str) -> str:
        """Text that shows entries, best first, that fit the budget, for a place in a client's message.

        Returns:
            In prose nothing without entries; in the ``words`` style a block, which is never missing.
        """
        block = self._block(tuple(map(Note.of, entries)), instruction)
        if self._words:
            return f"lessons{block} ."
        return f"{NOTES}\n{block}".rstrip() if block else ""

    def size(self, entries: Sequence[Entry], instruction: str) -> int:
        """Number of prompt tokens of the entries, best first, that fit the budget, with their headings."""
        return len(self._encoder.data(self._block(tuple(map(Note.of, entries)), instruction)))

    def _block(self, notes: tuple[Note, ...], instruction: str) -> str:
        """Notes, best first, that fit the budget whole."""
        lines = zip(notes, self._lines(notes, instruction), strict=True)
        return self._style.block([(note.zone, line) for note, line in lines if line])

    def is_cut(self, text: str) -> bool:
        """Report whether prompts show an observation or feedback shortened (``context.observation_tokens``)."""
        return self._shortener.text(text) != text

    def _fitting(self, notes: tuple[Note, ...], instruction: str) -> tuple[str, ...]:
        """Line of each note, best first; an empty one if it does not fit the rest of the budget.

        The first note of a zone also pays for the heading.
        """
        lines, left, zones = list[str](), self._config.experience_tokens, set[str]()
        for note in notes:
            line = self._line(note, instruction)
            cost = self._cost(line) + (0 if note.zone in zones else self._cost(self._style.heading(note.zone)))
            lines.append(line if cost <= left else "")
            if cost <= left:
                left -= cost
                zones.add(note.zone)
        return tuple(lines)

    def _layout(self, tools: str) -> Layout:
        return Layout(self._tokenizer, self._encoder, self._config.template, json.loads(tools))

    def _dialogue_of(self, tools: str) -> Dialogue:
        layout = self._layout(tools).conversation()
        return Dialogue(layout, self._encoder, self._prose, self._config.memory_length)


def _special_tokens(tokenizer: Any) -> set[str]:
    """Texts that the tokenizer would turn into a special token rather than into words."""
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    return {*tokenizer.all_special_tokens, *added}
