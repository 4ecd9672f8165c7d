"""Text of the world, made fit for the bank: one bounded line of data."""

import re

from records.inert import inert

LONGEST = 240
"""Most characters of a field of an entry."""

SCANNED = 64 * LONGEST
"""Characters of a text that are looked at: an environment may answer with any number of them."""

_STOP_WORDS = """a an and are as at be by for from has have i if in into is it its me my of off on onto or out please so
    that the their them then there this to up was were will with you your"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of what an instruction is about."""

WORD = re.compile(r"\w+")


def clean(text: str) -> str:
    """One inert line of at most ``LONGEST`` characters, taken from the first ``SCANNED`` of the text."""
    line = " ".join(inert(text[:SCANNED]).split())
    return line if len(line) <= LONGEST else line[: LONGEST + 1].rpartition(" ")[0][:LONGEST] or line[:LONGEST]


def words(text: str) -> list[str]:
    """Lower-case words in order, first occurrences only."""
    return list(dict.fromkeys(WORD.findall(text.lower())))


def content_words(text: str) -> list[str]:
    """``words`` without stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]
