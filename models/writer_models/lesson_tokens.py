"""Parts of an answer among its tokens: the item of each lesson.

An answer is decoded token by token, as far as that agrees with the whole text: a tokenizer that has a token for every
byte of a character decodes a prefix to text that the whole answer does not hold.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from coevo.models.answers.thinking import without_thinking
from coevo.records.lenient import lenient_at, value_at

LIST, FIELD = "lessons", "lesson"
"""Names in JSON of the list of items, and of an item's text."""
_LIST = re.compile(rf"[\"']?\b{LIST}\b[\"']?\s*[:=]\s*\[")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)
_NAMED = re.compile(r"\s*:\s*")
_MARK = re.compile(r"(?<!\S)#(?!\S)")
"""Beginning of an item in words, which ends with its text."""
_NUMBER = re.compile(r"\s*\d{1,3}\s", re.ASCII)
TRIED = 256
"""Maximum number of broken objects of an answer: each may be read to its end."""


def items(tokenizer: Any, token_ids: Sequence[int], texts: Sequence[str]) -> list[range | None]:
    """Tokens of the item that holds each text, in order; None for a text without an item that decodes to it.

    Of the lists in JSON that hold one of the texts, the last whole one counts, as for the reader of the answer, else
    the last one: others are drafts. A token that ends one item and begins the next belongs to the first.
    """
    answer = _Answer(tokenizer, token_ids)
    found, end = list[range | None](), 0
    for text in _aligned(_best(answer.text, answer.start, texts), texts):
        tokens = None if text is None else answer.tokens(text, end)
        end = end if tokens is None else tokens.stop
        found.append(tokens)
    return found


@dataclass(frozen=True, slots=True)
class _Item:
    """An item in the text of an answer.

    Attributes:
        start: place of its first character.
        end: place behind its last character.
        text: its lesson.
        written: its lesson as the answer spells it.
    """

    start: int
    end: int
    text: str
    written: str


class _Answer:
    """Text of an answer, and the tokens of its parts."""

    def __init__(self, tokenizer: Any, token_ids: Sequence[int]) -> None:
        self._tokenizer, self._ids = tokenizer, token_ids
        names = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
        self._silent = {getattr(tokenizer, name) for name in names}
        ends = token_ids[-1:] if set(token_ids[-1:]) & set(tokenizer.all_special_ids) else ()
        self._silent |= set(ends)
        self._lengths = dict[int, int]()
        self.text = self._decoded(token_ids)

    @cached_property
    def start(self) -> int:
        """Place at which the thinking is over; 0 where text stands on both sides of it."""
        return max(0, self.text.rfind(without_thinking(self.text, thinking=False).text))

    def tokens(self, item: _Item, after: int) -> range | None:
        """Tokens of an item from ``after`` on; None if they do not decode to its lesson."""
        counts = range(len(self._ids) + 1)
        start = bisect_right(counts, item.start, key=self._read) - 1
        stop = bisect_left(counts, item.end, key=self._read)
        found = range(max(start, after), stop)
        return found if item.written in self._decoded(self._ids[found.start : found.stop]) else None

    def _read(self, count: int) -> int:
        """Number of characters of the text that so many tokens decode to."""
        if count not in self._lengths:
            both = zip(self.text, said := self._decoded(self._ids[:count]), strict=False)
            apart = (index for index, (one, other) in enumerate(both) if one != other)
            self._lengths[count] = len(said) if self.text.startswith(said) else next(apart, len(self.text))
        return self._lengths[count]

    def _decoded(self, token_ids: Sequence[int]) -> str:
        """Text of tokens, as a completion has it."""
        return str(self._tokenizer.decode([token for token in token_ids if token not in self._silent]))


def _best(answer: str, start: int, texts: Sequence[str]) -> list[_Item]:
    """Items of the list that the texts were read from."""
    wanted = set(texts)
    lists = [found for found in _lists(answer, start) if any(item.text in wanted for item in found)]
    return lists[-1] if lists else list(_in_words(answer, start))


def _aligned(found: Sequence[_Item], texts: Sequence[str]) -> Iterator[_Item | None]:
    """Item of each text: both are in the order of the answer."""
    position = 0
    for text in texts:
        match = next((at for at in range(position, len(found)) if found[at].text == text), None)
        yield None if match is None else found[match]
        position = position if match is None else match + 1


def _lists(answer: str, start: int) -> list[list[_Item]]:
    """Items of each list, those of whole objects last."""
    whole = list(_objects(answer, start, len(answer), LIST, list))
    begun = [mark.end() for mark in _LIST.finditer(answer, start)]
    # A name with escapes in it is only seen in a whole object, whose first brace is not that of an item.
    inner = [(next((at for at in begun if begin < at < end), begin + 1), end) for begin, end, _ in whole]
    cut = [at for at in begun if not any(begin < at < end for begin, end, _ in whole)]
    return [list(_in_json(answer, *bounds)) for bounds in (*pairwise([*cut, len(answer)]), *inner)]


def _in_json(answer: str, start: int, stop: int) -> Iterator[_Item]:
    """Items that are objects, between two places."""
    for begin, end, made in _objects(answer, start, stop, FIELD, str):
        if (written := _written(answer, begin, end, made[FIELD])) is not None:
            yield _Item(begin, end, made[FIELD], written)


def _written(answer: str, start: int, end: int, text: str) -> str | None:
    """Spelling of a lesson in its object."""
    strings = list(_STRING.finditer(answer, start, end))
    for name, value in pairwise(strings):
        between = _NAMED.fullmatch(answer, name.end(), value.start())
        if between and _said(name[0]) == FIELD and _said(value[0]) == text:
            return value[0][1:-1]
    return None


def _said(string: str) -> object:
    """Text of a string in JSON, or nearly."""
    found = value_at(f"[{string}]", 0)
    return found[0][0] if found is not None and isinstance(found[0], list) else None


def _objects(answer: str, start: int, stop: int, name: str, kind: type) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Beginning, end and fields of the objects between two places that have a field of this name and type."""
    position, broken = answer.find("{", start, stop), 0
    while position >= 0 and broken < TRIED:
        try:
            made, end = _DECODER.raw_decode(answer, position)
        except (ValueError, RecursionError):
            # The reader of the answer takes an item in nearly JSON, too.
            made, end = lenient_at(answer, position) or (None, position + 1)
            broken += 1
        if isinstance(made, dict) and isinstance(made.get(name), kind) and end <= stop:
            yield position, end, made
        elif made is not None and name == LIST:
            end = position + 1  # the list may stand deeper
        position = answer.find("{", end, stop)


def _in_words(answer: str, start: int) -> Iterator[_Item]:
    """Items in words, each of which reaches to the next one; a number may stand before its text."""
    marks = [*(mark.start() for mark in _MARK.finditer(answer, start)), len(answer)]
    for begin, stop in pairwise(marks):
        end = begin + len(answer[begin:stop].rstrip())
        number = _NUMBER.match(answer, begin + 1, end)
        written = answer[number.end() if number else begin + 1 : end]
        yield _Item(begin, end, " ".join(written.split()), written)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; one that names a field twice has no fields, as nobody knows which value is meant."""
    made = dict(pairs)
    return made if len(made) == len(pairs) else {}


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)
