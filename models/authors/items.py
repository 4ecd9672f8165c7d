"""Parts of an answer among its tokens: the item of each lesson."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

MARKS = {"{": "}", "#": ""}
"""Beginning of an item and its end: of a JSON object, else of a lesson in words, which ends with its text."""


def items(tokenizer: Any, token_ids: Sequence[int], texts: Sequence[str]) -> list[range | None]:
    """Tokens of the item that holds each text, in order; None for a text that the answer does not hold.

    Texts are searched from the end, since a model may think about them before it answers.
    """
    answer, found = _decoded(tokenizer, token_ids), list[range | None]()
    for text in reversed(texts):
        place = max((answer.rfind(form), len(form)) for form in _forms(text))
        item = None if place[0] < 0 else _item(answer, *place)
        found.append(None if item is None else range(*(_token(tokenizer, token_ids, at) for at in item)))
        if item is not None:
            answer = answer[: item[0]]
    return found[::-1]


def _item(answer: str, place: int, length: int) -> tuple[int, int]:
    """Beginning and end of the item around a text, in characters."""
    mark = next((mark for mark in MARKS if mark in answer[:place]), "#")  # a field of JSON may hold the other mark
    start = answer.rfind(mark, 0, place)
    end = answer.find(MARKS[mark], place + length) if MARKS[mark] and start >= 0 else -1
    return (place if start < 0 else start), (place + length if end < 0 else end + 1)


def _forms(text: str) -> Iterator[str]:
    """A text as words have it, and as JSON may have it in a string."""
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _token(tokenizer: Any, token_ids: Sequence[int], position: int) -> int:
    """Number of tokens that end at or before a position in the text."""
    counts = range(1, len(token_ids) + 1)
    return bisect_right(counts, position, key=lambda count: len(_decoded(tokenizer, token_ids[:count])))


def _decoded(tokenizer: Any, token_ids: Sequence[int]) -> str:
    return str(tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))
