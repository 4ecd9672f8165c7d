"""Text of environments: reduced to one bounded line of data for the bank, and segmented into terms that are compared.

Retrieval, novelty and clusters share one segmentation and one folding. A term is a word without its case and
compatibility form. Scripts that put no blanks between words have no such words: there a term is a pair of neighbouring
characters, as in Lucene's CJK analyzer.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from unicodedata import normalize

import regex

from coevo.records.entry import QUOTES
from coevo.records.inert import visible

MAX_FIELD_CHARS = 240
"""Most characters of a field of an entry."""

MAX_SCANNED_CHARS = 64 * MAX_FIELD_CHARS
"""Characters of a text that are read, since an environment may answer with any number."""

_STOP_WORDS = """a an and are as at be by for from has have i if in into is it its me my of off on onto or out please so
    that the their them then there this to up was were will with you your"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that do not identify the subject of an instruction."""

WORD = re.compile(r"\w+")
"""Word of ASCII text."""

_LETTER = r"[\w\p{N}]"
_UNSPACED = r"""[[\p{Line_Break=SA}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}\p{scx=Yi}
    \p{Tangut}\p{Nushu}\p{Khitan_Small_Script}\p{Javanese}\p{Balinese}]&&[\p{L}\p{M}\p{Nl}]]"""
_PIECE = regex.compile(
    rf"""(?P<run>(?:{_UNSPACED}\p{{M}}*)+)
    |(?P<word>[{_LETTER}--{_UNSPACED}--\p{{M}}][[{_LETTER}\p{{M}}]--{_UNSPACED}]*)|(?P<other>[\S--\x1c-\x1f])""",
    regex.V1 | regex.VERBOSE,
)
"""Run of a script without blanks, word with its combining marks, or another visible character."""
_CHARACTER = regex.compile(r"\X")
_IGNORED = regex.compile(r"\p{Default_Ignorable_Code_Point}+")


def clean(text: str) -> str:
    """Reduce the first ``MAX_SCANNED_CHARS`` of a text to one visible line of at most ``MAX_FIELD_CHARS``."""
    line = " ".join(visible(text[:MAX_SCANNED_CHARS]).split())
    if len(line) <= MAX_FIELD_CHARS:
        return line
    whole = line[: MAX_FIELD_CHARS + 1].rpartition(" ")[0]
    # A script without blanks would lose all behind its only blank; a joiner at the end joins nothing.
    return whole if len(whole) > MAX_FIELD_CHARS // 2 else visible(line[:MAX_FIELD_CHARS])


def folded(text: str) -> str:
    """Text without what spellings of a word differ in: case, compatibility forms, invisible characters.

    This is Unicode's compatibility caseless folding, with two additions: the dot that lower case leaves over an i, of
    a Turkish İ, is dropped, and quotation marks are straight.
    """
    if text.isascii():
        return text.lower()
    text = normalize("NFD", _IGNORED.sub("", text))
    for _ in range(2):  # a compatibility form may have capitals, and small letters may have another form
        text = normalize("NFKC", text.casefold())
    return text.replace("i\u0307", "i").translate(QUOTES)


def terms(text: str) -> list[str]:
    """Terms of a text in order: words, and pairs of characters in scripts without blanks."""
    return WORD.findall(text.lower()) if text.isascii() else list(_terms(text, others=False))


def pieces(text: str) -> list[str]:
    """Terms of a text, and every other visible character, in order."""
    return list(_terms(text, others=True))


def words(text: str) -> list[str]:
    """``terms`` in order, first occurrences only."""
    return list(dict.fromkeys(terms(text)))


def content_words(text: str) -> list[str]:
    """``words`` without stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def _terms(text: str, *, others: bool) -> Iterator[str]:
    for found in _PIECE.finditer(folded(text)):
        if found.lastgroup == "run":
            characters = _CHARACTER.findall(found.group())
            yield from map("".join, pairwise(characters)) if len(characters) > 1 else characters
        elif others or found.lastgroup == "word":
            yield found.group()
