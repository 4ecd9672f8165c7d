"""The text of an answer that can be sent while the rest is drawn: nothing that follows changes it any more.

Text is held back while it may be thinking, the beginning of a call, a mark of a template or a stop. From a mark within
the text on, all is held until the answer is whole: what it means depends on what follows.
"""

from collections.abc import Sequence
from itertools import takewhile

import regex

from coevo.models.answers.calls import CALL_MARKS
from coevo.models.answers.thinking import FINAL_MARK, THINKING_MARKS

MAX_MARK_CHARS = 160
"""Maximum characters of a mark that is recognised by its beginning: a bracket and the longest name of a tool."""
_THINKING = regex.compile(THINKING_MARKS, regex.IGNORECASE)
_FINAL = regex.compile(FINAL_MARK)
_TEXT_MARKS = (_THINKING, _FINAL)
_CALL_MARKS = (*_TEXT_MARKS, *map(regex.compile, CALL_MARKS))
_CLOSING = {"open": "close", "channel": "end"}


class IncrementalReader:
    """Reads an answer piece by piece.

    Args:
        thinks: True if the prompt ends within thinking.
        calls: True if the answer may hold calls.
        stops: texts that end the answer.

    Attributes:
        reasoning: thinking before the text, once the text has begun.
        start: position of the text in the answer, once it has begun.
        stopped: True once the answer holds a stop.
    """

    def __init__(self, thinks: bool, calls: bool, stops: Sequence[str]) -> None:
        self.reasoning, self.stopped = "", False
        self._raw, self._stops, self._stop = "", stops, 0
        self._marks = _CALL_MARKS if calls else _TEXT_MARKS
        self._awaited = "close" if thinks else ""
        self._at, self._sent, self._begun, self.start = 0, 0, False, 0
        self._held = False

    def feed(self, piece: str) -> str:
        """Add the next piece of the answer; the text that can be sent now, which may be empty."""
        searched = max(0, len(self._raw) - MAX_MARK_CHARS)
        self._raw += piece
        limit = self._limit(searched)
        if self._held:
            return ""
        if not self._begun:
            self._begin(limit)
        return self._more(limit, searched) if self._begun else ""

    def _limit(self, searched: int) -> int:
        """Position behind what no stop can take away."""
        if self.stopped:
            return self._stop
        found = [at for stop in self._stops if (at := self._raw.find(stop, max(0, searched - len(stop)))) >= 0]
        if found:
            self.stopped, self._stop = True, min(found)
            return self._stop
        tails = (size for stop in self._stops for size in range(1, len(stop)) if self._raw.endswith(stop[:size]))
        return len(self._raw) - max(tails, default=0)

    def _begin(self, limit: int) -> None:
        """Find the beginning of the text, behind blanks and thinking."""
        while True:
            if self._awaited:
                ends = _THINKING.finditer(self._raw, self._at, limit)
                end = next((mark for mark in ends if mark.lastgroup == self._awaited), None)
                if end is None:
                    return
                self._awaited, self._at = "", end.end()
            blanks = sum(1 for _ in takewhile(str.isspace, self._raw[self._at : limit]))
            start = self._at + blanks
            mark = _THINKING.match(self._raw, start, limit, partial=True) or _FINAL.match(
                self._raw, start, limit, partial=True
            )
            if start == limit or (mark is not None and mark.partial):
                return
            if mark is None or mark.lastgroup == "end":
                self.reasoning = self._raw[: self._at].strip()
                self._begun, self._sent, self.start = True, start, start
                return
            self._at, self._awaited = mark.end(), _CLOSING.get(str(mark.lastgroup), "")

    def _more(self, limit: int, searched: int) -> str:
        """Text up to the first mark, or to what may become one."""
        start = max(self._sent, searched)
        whole = [mark.start() for kind in self._marks if (mark := kind.search(self._raw, start, limit))]
        if whole:
            self._held, limit = True, min(whole)
        else:
            tail = range(max(start, limit - MAX_MARK_CHARS), limit)
            limit = next((at for at in tail if self._may_begin(at, limit)), limit)
        text = self._raw[self._sent : limit].rstrip()
        self._sent += len(text)
        return text

    def _may_begin(self, at: int, limit: int) -> bool:
        found = (kind.match(self._raw, at, limit, partial=True) for kind in self._marks)
        return any(mark is not None for mark in found)
