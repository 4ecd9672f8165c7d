"""Words of entries by field: counted once per entry of a catalogue, whatever its versions."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, filterfalse

import numpy as np
import numpy.typing as npt

from coevo.memory.library import Column, Library
from coevo.memory.retrieval.segment import Segment, invert, positions
from coevo.memory.text import terms
from coevo.records.arrays import Indices, ShortIntegers
from coevo.records.entry import Entry

SMALL = 4096
"""Entries that always form a single segment."""
SHARE = 8
"""Beyond ``SMALL``, new entries form a second segment until they are more than one in so many of the first."""
CHUNK = 1 << 16
"""Entries whose words are counted together, which bounds the memory of a large library."""


@dataclass(frozen=True)
class Counts:
    """Words of the entries of one library; a term is a word of a field.

    Arrays by number also cover entries that are not in this library.

    Attributes:
        numbers: (entries,) number of each row's entry.
        row_of: (numbers,) row of an entry, -1 if it is not in the library.
        frequency: (terms,) entries of the library that have the term.
        words: (fields,) words of all entries of the library.
        lengths: (numbers, fields) words.
        sizes: (numbers, fields) distinct words.
        starts: (numbers + 1,) first position of each entry in ``terms`` and ``times``.
        terms: number of the term, in the order of the entry's text.
        times: its count in the field.
        segments: entries by term.
        vocabulary: numbers of words; includes words of later libraries. A term's number is that of its word, times
            the number of fields, plus that of the field.
    """

    numbers: Indices
    row_of: ShortIntegers
    frequency: Indices
    words: Indices
    lengths: ShortIntegers
    sizes: ShortIntegers
    starts: Indices
    terms: ShortIntegers
    times: ShortIntegers
    segments: Sequence[Segment]
    vocabulary: Mapping[str, int]

    def asked(self, text: str, without: frozenset[str]) -> tuple[list[int], list[int]]:
        """Numbers of a text's words that the library may have, in the order of the text, and their counts in it."""
        count_of = Counter(filterfalse(without.__contains__, terms(text)))
        number, end = self.vocabulary.get, len(self.frequency) // len(self.words)
        found = [(number(word, end), times) for word, times in count_of.items()]
        held = [pair for pair in found if pair[0] < end]
        return [word for word, _ in held], [times for _, times in held]


class Lexicon:
    """Counts of libraries, of which only what is new in a library is counted anew."""

    def __init__(self, fields: Iterable[str]) -> None:
        self._names = tuple(fields)
        self._restart([])

    def count(self, library: Library) -> Counts:
        """Count the words of a library."""
        catalogue = library.catalogue
        if catalogue.seen is not self._seen:
            self._restart(catalogue.seen)
        self._learn(catalogue.seen[len(self._lengths) :])
        row_of = np.full(len(self._lengths), -1, np.int32)
        row_of[catalogue.numbers] = np.arange(len(library), dtype=np.int32)
        self._recount(row_of >= 0)
        return Counts(
            numbers=catalogue.numbers,
            row_of=row_of,
            frequency=self._frequency,
            words=self._words,
            lengths=self._lengths.read(),
            sizes=self._sizes.read(),
            starts=self._starts.read(),
            terms=self._terms.read(),
            times=self._times.read(),
            segments=self._segments,
            vocabulary=self._vocabulary,
        )

    def _restart(self, seen: list[Entry]) -> None:
        self._seen = seen
        self._vocabulary = defaultdict[str, int](count().__next__)
        self._terms, self._times, self._starts = Column(np.int32), Column(np.int32), Column(np.intp)
        self._starts.extend([0])
        self._lengths, self._sizes = Column(np.int32, len(self._names)), Column(np.int32, len(self._names))
        self._segments: tuple[Segment, ...] = ()
        self._held = np.zeros(0, bool)
        self._frequency, self._words = np.zeros(0, np.intp), np.zeros(len(self._names), np.intp)

    def _learn(self, entries: Sequence[Entry]) -> None:
        """Count the words of new entries."""
        number, names = self._vocabulary.__getitem__, self._names
        words, times, lengths, sizes = array("i"), array("i"), array("i"), array("i")
        for entry in entries:
            for name in names:
                found = terms(getattr(entry, name))
                counts = Counter(map(number, found))
                words.extend(counts.keys())
                times.extend(counts.values())
                lengths.append(len(found))
                sizes.append(len(counts))
        by_field = np.array(sizes, np.int32).reshape(-1, len(names))
        fields = np.repeat(np.tile(np.arange(len(names), dtype=np.int32), len(entries)), sizes)
        self._starts.extend(len(self._terms) + by_field.sum(axis=1).cumsum())
        self._terms.extend(np.array(words) * len(names) + fields)
        self._times.extend(np.array(times))
        self._lengths.extend(np.array(lengths, np.int32).reshape(by_field.shape))
        self._sizes.extend(by_field)
        if entries:
            self._invert()

    def _invert(self) -> None:
        """List the entries of each term; those of the first segment stay as they are until many have followed."""
        end, first = len(self._lengths), len(self._segments[0]) if self._segments else 0
        whole = end <= SMALL or (end - first) * SHARE > first
        kept, since = ((), 0) if whole else (self._segments[:1], first)
        starts, terms = self._starts.read()[since:], len(self._vocabulary) * len(self._names)
        held = slice(starts[0], starts[-1])
        self._segments = *kept, invert(since, starts, self._terms.read()[held], self._times.read()[held], terms)

    def _recount(self, held: npt.NDArray[np.bool_]) -> None:
        """Count entries by term and words by field once these entries, by number, are in the library."""
        before = np.zeros(len(held), bool)
        before[: len(self._held)] = self._held
        frequency = np.zeros(len(self._vocabulary) * len(self._names), np.intp)
        frequency[: len(self._frequency)] = self._frequency
        for sign, changed in ((1, held & ~before), (-1, before & ~held)):
            for numbers in np.split(places := np.flatnonzero(changed), range(CHUNK, len(places), CHUNK)):
                starts = self._starts.read()
                at, _ = positions(starts[numbers], starts[numbers + 1])
                frequency += sign * np.bincount(self._terms.read()[at], minlength=len(frequency))
                self._words = self._words + sign * self._lengths.read()[numbers].sum(axis=0)
        self._held, self._frequency = held, frequency
