"""Full-text search by BM25 (Robertson and Zaragoza 2009) with the constants of WebShop's engine (Anserini's)."""

import re
from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

K1, B = 0.9, 0.4
BLOCK = 64
"""Documents whose highest score is taken together when the best are sought."""
MAX_QUERY_WORDS = 64
_WORD = re.compile(r"[a-z0-9]+")
STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and are as at be but by find for from i if in into is it its me my no not of on or our show so such than "
        "that the their then there these they this to want was we will with you your"
    )
)


def words_of(text: str) -> list[str]:
    """Words of a text in lower case, without stop words, and without the ending of a plural."""
    found = _WORD.findall(text.lower())
    return [_singular(word) for word in found if word not in STOP_WORDS]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


class SearchIndex:
    """Index of texts, which are named by their number.

    Args:
        texts: one per document.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._terms: dict[str, int] = {}
        terms, lengths = array("q"), array("q")
        for text in texts:
            found = words_of(text)
            terms.extend(self._terms.setdefault(word, len(self._terms)) for word in found)
            lengths.append(len(found))
        self._size = len(lengths)
        self._weigh(np.frombuffer(terms, np.int64), np.frombuffer(lengths, np.int64))

    def _weigh(self, terms: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> None:
        """Postings sorted by term, each with its document and its part of that document's score."""
        documents = np.repeat(np.arange(self._size), lengths)
        pairs, counts = np.unique(terms * self._size + documents, return_counts=True)
        term, document = np.divmod(pairs, max(1, self._size))
        frequency = np.bincount(term, minlength=len(self._terms))
        rarity = np.log1p((self._size - frequency + 0.5) / (frequency + 0.5))
        norm = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if self._size else 1.0))
        self._starts = np.concatenate(([0], np.cumsum(frequency)))
        self._documents = document.astype(np.int32)
        self._weights = (rarity[term] * counts / (counts + norm[document])).astype(np.float32)

    def search(self, query: str, most: int) -> tuple[int, ...]:
        """Documents that share a word with a query, best first, equal ones in their order; at most ``most``."""
        scores = np.zeros(-(-self._size // BLOCK) * BLOCK, np.float32)
        for word in dict.fromkeys(words_of(query)[:MAX_QUERY_WORDS]):
            number = self._terms.get(word)
            if number is not None:
                span = slice(self._starts[number], self._starts[number + 1])
                scores[self._documents[span]] += self._weights[span]
        # So many blocks hold a score of at least the bound that nothing below it can be among the best.
        highest = scores.reshape(-1, BLOCK).max(axis=1)
        bound = np.partition(highest, -most)[-most] if len(highest) > most else np.float32(0)
        best = np.flatnonzero((scores >= bound) & (scores > 0))
        return tuple(best[np.lexsort((best, -scores[best]))[:most]].tolist())
