"""Prompts of questions, and token ids of answers."""

from collections.abc import Mapping
from typing import Any

from coevo.models.policy.encoding import TemplateEncoder
from coevo.models.policy.ends import template_end
from coevo.models.policy.layout import HEAD, Layout
from coevo.models.policy.tokenizers import ROLES, TEMPLATE
from coevo.records.inert import control_tokens, either, inert, whole_words
from coevo.records.writing import Question


class Prompts:
    """Writer of prompts for one tokenizer.

    A word-level tokenizer has one token for a control token and for the word: such words are removed from questions.

    Attributes:
        empty: text of a prompt without contents.
    """

    def __init__(self, tokenizer: Any, template: Mapping[str, Any]) -> None:
        self._encoder = TemplateEncoder(tokenizer)
        self._layout = Layout(tokenizer, self._encoder, template).prompt(HEAD)
        self._words = tokenizer.chat_template == TEMPLATE
        self._control = either(control_tokens(tokenizer.all_special_tokens), whole_words(ROLES))
        end = template_end(tokenizer, template)
        self._end = tokenizer.eos_token_id if end is None else end
        self.empty = self._layout.text(("", ""))

    def ids(self, question: Question) -> tuple[int, ...]:
        """Token ids of a question, up to the beginning of its answer."""
        said = (self._data(question.system), self._data(question.user))
        return self._encoder.ids(self._layout.parts(self._encoder, said))

    def size(self, text: str) -> int:
        """Number of tokens of a text in a question."""
        return len(self._encoder.data(self._data(text)))

    def target(self, answer: str) -> tuple[int, ...]:
        """Token ids of an answer, including the end token."""
        return (*self._encoder.data(self._data(answer)), self._end)

    def _data(self, text: str) -> str:
        return inert(text, self._control) if self._words else text
