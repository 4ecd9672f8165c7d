"""Shortening of long observations: their head and tail are kept, and the cut is marked."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from coevo.records.demonstration import Moment, PastTurn

MARK = "\n[... {count} tokens are left out ...]\n"
"""Text in place of what was left out."""
WIDEST = 16
"""Characters per token up to which a head or tail is looked for."""


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
        return text[len(text) - low :] if ends else text[:low]
