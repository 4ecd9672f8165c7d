"""Token ids of prompts: control tokens act where the chat template wrote them, and nowhere else.

A tokenizer first splits text at its control tokens. Here the split is made in the template's own text alone; whatever
lies between two control tokens, contents of messages included, is encoded by a copy of the tokenizer that knows no
control tokens. Contents are therefore read as they were written (``<s>``, ``x<|y|>z``), and each part is encoded as it
is in the whole text.
"""

import json
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from typing import Any

from tokenizers import Tokenizer
from tokenizers.normalizers import NFC

from coevo.models.policy.tokenizers import Guess
from coevo.records.inert import encodable
from coevo.utilities.errors import CoevoError

PromptPart = int | str
"""Id of a control token, or plain text."""
Trim = Callable[[str], str]
_CACHED = 1024
"""Maximum characters of a text or line whose token ids are kept for its next use."""
MAX_PIECE_CHARS = 256
"""Maximum characters of a text that is encoded in one piece."""
_BESIDE = "aZé世عह1.,:;!?)(]}>\"'`-_*#$|\\/=+&%@^~<{[😀"
"""Characters before and after a line break with which a tokenizer is tried: letters, numbers, marks."""


class TemplateEncoder:
    """Encoder of a template's text and of contents for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        added = {str(token): (index, token) for index, token in tokenizer.added_tokens_decoder.items()}
        self._index: dict[str, int] = {text: index for text, (index, _) in added.items()}
        self._left = {index for index, token in added.values() if token.lstrip}
        self._right = {index for index, token in added.values() if token.rstrip}
        self._encode, unknown, self._divides = _plain(tokenizer)
        self._control = frozenset(self._index.values()) - {unknown}
        longest_first = sorted(filter(None, self._index), key=len, reverse=True)
        self._tokens = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._split = lru_cache(maxsize=256)(self._parts)
        self._line = lru_cache(maxsize=2**15)(self._harmless)

    def split(self, text: str) -> tuple[PromptPart, ...]:
        """Split text of a template at its control tokens."""
        return self._split(text)

    def data(self, text: str) -> tuple[int, ...]:
        """Token ids of a content, or of a part of one; lines that were encoded before are not encoded again."""
        text = encodable(text)
        if len(text) <= MAX_PIECE_CHARS or not self._divides:
            return tuple(self._ids(text))
        return tuple(chain.from_iterable(map(self._ids, lines_of(text))))

    def ids(self, parts: Iterable[PromptPart]) -> tuple[int, ...]:
        """Token ids of control tokens and the plain text between them."""
        joined = _joined(parts)
        ids: list[int] = []
        for index, part in enumerate(joined):
            if isinstance(part, int):
                ids.append(part)
                continue
            # Some control tokens take the blanks beside them.
            text = part.lstrip() if index and joined[index - 1] in self._right else part
            ahead = joined[index + 1] if index + 1 < len(joined) else None
            ids.extend(self.data(text.rstrip() if ahead in self._left else text))
        return tuple(ids)

    def _ids(self, text: str) -> "array[int]":
        return self._line(text) if len(text) <= _CACHED else self._harmless(text)

    def _parts(self, text: str) -> tuple[PromptPart, ...]:
        parts: list[str] = self._tokens.split(text)
        return tuple(self._index.get(part, part) for part in parts if part)

    def _harmless(self, text: str) -> "array[int]":
        ids = self._encode(text)
        if self._control.isdisjoint(ids):
            return array("I", ids)
        # The vocabulary has control tokens among its words: spell these out.
        spelled = (list(part) if part in self._index else [part] for part in self._tokens.split(text))
        ids = [index for parts in spelled for part in parts for index in self._encode(part)]
        return array("I", (index for index in ids if index not in self._control))


def _joined(parts: Iterable[PromptPart]) -> list[PromptPart]:
    joined: list[PromptPart] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _plain(tokenizer: Any) -> tuple[Callable[[str], Sequence[int]], int | None, bool]:
    """Encoder without control tokens, the id of its unknown words, and whether it encodes lines by themselves."""
    if isinstance(tokenizer, Guess):
        return lambda text: tokenizer(text)["input_ids"], None, False
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise CoevoError(
            f"the tokenizer {type(tokenizer).__name__} has no tokenizer.json, which prompts need: save it as a fast one"
        )
    plain = _without_control_tokens(backend)
    unknown = getattr(plain.model, "unk_token", None)
    encode = lambda text: plain.encode(text, add_special_tokens=False).ids  # noqa: E731
    return encode, unknown and plain.token_to_id(unknown), divides(plain)


def _without_control_tokens(backend: Tokenizer) -> Tokenizer:
    made = json.loads(backend.to_str())
    made.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    _unprefixed(made["pre_tokenizer"])
    return Tokenizer.from_str(json.dumps(made))


def _unprefixed(pre_tokenizer: dict[str, Any] | None) -> None:
    """Let no text begin with a blank of its own: the tokenizer would put one only before the first text of a prompt."""
    for part in (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer or {}]):
        if part.get("prepend_scheme") == "first":
            part["prepend_scheme"] = "never"


def divides(tokenizer: Tokenizer) -> bool:
    """Report whether a tokenizer encodes the lines of ``lines_of`` by themselves."""
    if tokenizer.pre_tokenizer is None or not isinstance(tokenizer.normalizer, NFC | None):
        return False
    return all(_pieces(tokenizer, f"x{a}\n", f"{b}y\n") for a, b in product(_BESIDE, repeat=2))


def lines_of(text: str) -> list[str]:
    """Divide a text before each line that begins with no blank and follows one that ends with none."""
    first, *others = text.split("\n")
    found = [first]
    for line in others:
        if _is_dark(line[:1]) and _is_dark(found[-1][-1:]):
            found[-1] += "\n"
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    return found


def _pieces(tokenizer: Tokenizer, *lines: str) -> bool:
    split = tokenizer.pre_tokenizer.pre_tokenize_str
    alone = [piece for line in lines for piece, _ in split(line)]
    return [piece for piece, _ in split("".join(lines))] == alone


def _is_dark(character: str) -> bool:
    """True for a character that is neither a blank nor a control character."""
    return character.isprintable() and bool(character.strip())


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of a template with places for contents.

    Attributes:
        fixed: text before, between and after the contents.
        trims: change to the blanks of each content.
    """

    fixed: tuple[str, ...]
    trims: tuple[Trim, ...]

    def parts(self, encoder: TemplateEncoder, contents: Sequence[str]) -> list[PromptPart]:
        """The piece with its contents, split at the control tokens of the template."""
        parts = list(encoder.split(self.fixed[0]))
        for trim, content, text in zip(self.trims, contents, self.fixed[1:], strict=True):
            parts += [trim(content), *encoder.split(text)]
        return parts

    def text(self, contents: Sequence[str]) -> str:
        """The piece with its contents."""
        trimmed = (trim(content) for trim, content in zip(self.trims, contents, strict=True))
        return self.fixed[0] + "".join(map(str.__add__, trimmed, self.fixed[1:]))
