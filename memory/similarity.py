"""Similarity of texts as token sequences: 2 LCS(a, b) / (|a| + |b|), symmetric, and 1 for equal sequences only.

Tokens are terms as retrieval compares them, and other visible characters, so that spellings of one text are equal. A
text is encoded with one character per token, so that rapidfuzz compares tokens at the speed of characters. An exact
bound excludes most texts before: a common subsequence has no token more often than either text has it.
"""

import re

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from coevo.memory.text import pieces

TOKEN = re.compile(r"\w+|\S")
"""Token of ASCII text in lower case."""
MAX_UNBOUNDED_TEXTS = 64
"""Texts that are compared without the bound, which would cost more."""
BUCKETS = 256
"""Tokens are counted by their number modulo this; collisions loosen the bound and keep it valid."""
ROUNDING = 1e-9
"""Largest rounding error of the bound."""
UNKNOWN = "\0"
_SURROGATES = range(0xD800, 0xE000)

Numbers = npt.NDArray[np.intp]
Similarities = npt.NDArray[np.float64]


class SimilarityIndex:
    """Numbered texts, and search for those similar to a given one."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}
        self._texts: list[str] = []
        self._counts = np.zeros((BUCKETS, 64), np.int32)
        self._lengths = np.zeros(64, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str) -> int:
        """Add a text; return its number, counted from 0."""
        number = len(self._texts)
        if number == self._counts.shape[1]:
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)], axis=1)
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        coded = "".join(self._letters.setdefault(token, _letter(len(self._letters))) for token in _tokens(text))
        self._texts.append(coded)
        self._lengths[number] = len(coded)
        np.add.at(self._counts[:, number], _buckets(coded), 1)
        return number

    def above(self, text: str, least: float, since: int = 0) -> tuple[Numbers, Similarities]:
        """Numbers and similarities of the texts at least this similar, numbers ascending from ``since``."""
        asked = "".join(self._letters.get(token, UNKNOWN) for token in _tokens(text))
        few = len(self) - since <= MAX_UNBOUNDED_TEXTS
        numbers = np.arange(since, len(self)) if few else self._able(asked, least, since)
        if not len(numbers):
            return numbers, np.zeros(0)
        texts = [self._texts[number] for number in numbers.tolist()]
        scores = cdist([asked], texts, scorer=Indel.normalized_similarity, dtype=np.float64)[0]
        kept = scores >= least
        return numbers[kept], scores[kept]

    def nearest(self, text: str, least: float, since: int = 0) -> tuple[int, float]:
        """Number and similarity of the most similar text, the earlier of equals; -1 and 0 if none reaches ``least``."""
        numbers, scores = self.above(text, least, since)
        if not len(numbers):
            return -1, 0.0
        best = int(scores.argmax())
        return int(numbers[best]), float(scores[best])

    def _able(self, asked: str, least: float, since: int) -> Numbers:
        """Texts that reach ``least`` if all tokens that two texts share came in the same order.

        Lengths are checked first: a lesson of a few words is never similar to an observation of many.
        """
        lengths = self._lengths[since : len(self)]
        needed = (least - ROUNDING) * (lengths + len(asked))
        fitting = 2 * np.minimum(lengths, len(asked)) >= needed
        if not fitting.any():
            return np.zeros(0, np.intp)
        times = np.bincount(_buckets(asked.replace(UNKNOWN, "")), minlength=BUCKETS)
        used = np.flatnonzero(times)
        shared = np.minimum(self._counts[used, since : len(self)], times[used, None]).sum(axis=0)
        return since + np.flatnonzero(fitting & (2 * shared >= needed))


def _tokens(text: str) -> list[str]:
    return TOKEN.findall(text.lower()) if text.isascii() else pieces(text)


def _letter(number: int) -> str:
    """Character that encodes the token with this number; never a surrogate, never ``UNKNOWN``."""
    code = number + 1
    return chr(code if code < _SURROGATES.start else code + len(_SURROGATES))


def _buckets(coded: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(coded.encode("utf-32-le"), np.uint32) % BUCKETS
