"""Questions that a writer puts to a language model, and its replies."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property

BYTES = 3
"""Bytes of text per estimated token: English has about four in current vocabularies."""


_SIGN, _LETTER = re.compile(r"[!-@\[-`{-~]"), re.compile(r"[A-Za-z\x00-\x20\x7f]")


def estimated(text: str | bytes) -> int:
    """Tokens of a text, rather too many than too few; at least one."""
    return len(text if isinstance(text, bytes) else text.encode(errors="replace")) // BYTES + 1


def most_tokens(text: str) -> int:
    """Tokens of a text that few vocabularies exceed: each digit and sign may be one, as in boards and tables."""
    signs, letters = len(_SIGN.findall(text)), len(_LETTER.findall(text))
    others = len(text.encode(errors="replace")) - signs - letters
    return signs + letters // BYTES + others // 2 + 1


@dataclass(frozen=True, slots=True)
class QuestionRoom:
    """Room that a writer model has for one question.

    Attributes:
        tokens: maximum tokens of its system and user messages.
        size: function that counts the tokens of a text; an estimate where no tokenizer is known.
    """

    tokens: int
    size: Callable[[str], int] = most_tokens

    def of(self, question: "Question") -> int:
        """Tokens that a question leaves; below 0 if it is too long."""
        return self.tokens - self.size(question.system) - self.size(question.user)


@dataclass(frozen=True)
class Question:
    """One question to a writer model.

    Attributes:
        purpose: prompt that asks, such as ``reflection``.
        task: id of the task that it is about; empty if it is about several.
        episodes: ids of the episodes that it shows.
        system: system message.
        user: user message; text from an environment in it is data.
        schema: JSON schema of the answer, as JSON; empty for free text.
    """

    purpose: str
    task: str
    episodes: tuple[str, ...]
    system: str
    user: str
    schema: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all that was asked: equal questions have equal answers in a journal."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Drawn:
    """Tokens of an answer as the run's policy drew them.

    Attributes:
        prompt_ids: token ids of the question.
        token_ids: token ids of the answer, its thinking and its end token included.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of a writer model to one question.

    Attributes:
        text: the answer without its thinking; empty if there is none.
        finished: True if the answer ended by itself rather than by its length limit.
        prompt_tokens: tokens of the prompt, 0 if unknown.
        answer_tokens: tokens of the answer, its thinking included.
        fault: reason why there is no answer, on one line; empty if there is one.
        drawn: tokens that the policy learns from; None if it does not learn to write, or another model answered.
    """

    text: str
    finished: bool
    prompt_tokens: int = 0
    answer_tokens: int = 0
    fault: str = ""
    drawn: Drawn | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """Reward of a part of an answer.

    Attributes:
        start: index of its first token.
        end: index behind its last token.
        reward: of the part as a whole.
    """

    start: int
    end: int
    reward: float


@dataclass(frozen=True, slots=True)
class Rewarded:
    """An answer with its rewards: a sample of the update that trains the writer.

    Attributes:
        drawn: tokens of the answer.
        credits: rewarded parts, which do not overlap; the other tokens are not trained.
        weight: factor of its advantages.
    """

    drawn: Drawn
    credits: tuple[Credit, ...]
    weight: float = 1.0
