"""The ``words`` style: terse messages for word-level policies.

The words that begin a message, a block or a turn are control tokens within a lesson; the full stop is not, since
lessons contain it themselves. A word-level tokenizer has one token for a control token and for the word, so they are
removed from all text instead of being spelled out.
"""

from collections.abc import Sequence
from typing import Any

from coevo.configs.context_config import ContextConfig
from coevo.models.policy.tokenizer import ROLES
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.inert import COMMON, control_tokens, either, inert, whole_words

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


def _special_tokens(tokenizer: Any) -> set[str]:
    """Texts that the tokenizer would turn into a special token rather than into words."""
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    return {*tokenizer.all_special_tokens, *added}
