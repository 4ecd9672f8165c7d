"""Words of entries by field, and for each word the entries that have it: what TF-IDF and BM25 are computed from."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from memory.library import Floats, Library
from memory.text import WORD

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """How often each entry has each of its terms; a term is a word of a field.

    Attributes:
        rows: library row, ascending.
        terms: number of the term.
        fields: number of the field.
        times: how often.
        frequency: (terms,) entries that have the term.
        shape: entries, terms and fields.
        vocabulary: of each field, terms by word; terms of other libraries are among them.
    """

    rows: Ints
    terms: Ints
    fields: Ints
    times: Floats
    frequency: Floats
    shape: tuple[int, int, int]
    vocabulary: Sequence[Mapping[str, int]]

    def asked(self, text: str, without: frozenset[str]) -> list[dict[int, int]]:
        """Of each field the terms of a text that an entry of the library has, and how often each is asked for."""
        words = Counter(word for word in WORD.findall(text.lower()) if word not in without)
        return [
            {terms[word]: times for word, times in words.items() if self._held(terms.get(word))}
            for terms in self.vocabulary
        ]

    def _held(self, term: int | None) -> bool:
        return term is not None and term < len(self.frequency) and self.frequency[term] > 0

    def sums(self, values: Floats) -> Floats:
        """(entries, fields) sums of a value of each row."""
        entries, _, fields = self.shape
        flat = np.bincount(self.rows * fields + self.fields, values, entries * fields).astype(float)
        return flat.reshape(entries, fields)


class Lexicon:
    """Numbers the words of some fields; the words of an entry are counted once, whatever library it is in."""

    def __init__(self, fields: Iterable[str]) -> None:
        names = tuple(fields)
        self._vocabulary: list[dict[str, int]] = [{} for _ in names]
        self._field_of = array("q")
        # What was counted, end to end; the counts of the texts with number i begin at _starts[i].
        self._numbers: dict[tuple[str, ...], int] = {}
        self._terms, self._times, self._starts = array("q"), array("q"), array("q", [0])
        # With a single name an attrgetter would give the text itself.
        self._texts = attrgetter(*names, "id")

    def count(self, library: Library) -> Counts:
        """The words of a library."""
        find, learn = self._numbers.get, self._learn
        found = (find(texts, -1) for texts in map(self._texts, library.entries))
        known = [learn(self._texts(entry)) if at < 0 else at for at, entry in zip(found, library.entries, strict=True)]
        numbers, starts = np.array(known, np.int64), np.array(self._starts)
        sizes = starts[numbers + 1] - starts[numbers]
        rows = np.repeat(np.arange(len(numbers)), sizes)
        at = np.arange(len(rows)) + np.repeat(starts[numbers] - sizes.cumsum() + sizes, sizes)
        terms, fields = np.array(self._terms)[at], np.array(self._field_of)
        return Counts(
            rows=rows,
            terms=terms,
            fields=fields[terms],
            times=np.array(self._times, float)[at],
            frequency=np.bincount(terms, minlength=len(fields)).astype(float),
            shape=(len(numbers), len(fields), len(self._vocabulary)),
            vocabulary=self._vocabulary,
        )

    def _learn(self, texts: tuple[str, ...]) -> int:
        counts: Counter[int] = Counter()
        for field, text in enumerate(texts[:-1]):
            counts.update(self._number(field, word) for word in WORD.findall(text.lower()))
        self._terms.extend(counts.keys())
        self._times.extend(counts.values())
        self._starts.append(len(self._terms))
        return self._numbers.setdefault(texts, len(self._numbers))

    def _number(self, field: int, word: str) -> int:
        terms = self._vocabulary[field]
        if word not in terms:
            terms[word] = len(self._field_of)
            self._field_of.append(field)
        return terms[word]


class Postings:
    """Weights by term: for every term the entries that have it, and what it is worth in them."""

    def __init__(self, counts: Counts, weights: Floats) -> None:
        from scipy.sparse import csr_matrix

        entries, terms, _ = counts.shape
        starts = np.searchsorted(counts.rows, np.arange(entries + 1))
        columns = csr_matrix((weights, counts.terms, starts), shape=(entries, terms)).tocsc()
        self._entries = entries
        self._rows, self._weights, self._starts = columns.indices, columns.data, columns.indptr

    def add_up(self, asked: Mapping[int, float]) -> Floats:
        """(entries,) for each entry the sum over the terms asked for of their factor times their weight in it."""
        scores = np.zeros(self._entries)
        for term, factor in asked.items():
            held = slice(self._starts[term], self._starts[term + 1])
            scores[self._rows[held]] += factor * self._weights[held]
        return scores
