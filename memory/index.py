"""Structured TF-IDF over one version of the bank, in memory (CoEvo-RL Eq. 2)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from configs.bank import TfidfConfig
from memory.text import WORD
from records.entry import Entry


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that matches a query, and how well."""

    entry: Entry
    score: float


@dataclass(frozen=True, slots=True)
class _Field:
    """One indexed field: its columns in the matrix, and what turns a query into values there."""

    columns: dict[str, int]
    idf: npt.NDArray[np.float64]
    start: int
    scale: float


class Index:
    """Top-k search over the active ones of ``entries``; later changes of the bank do not reach it.

    s(q, e) = sum over fields f of w_f cos(tfidf_f(q), tfidf_f(e)). Every field has its own vocabulary of lower-case
    words and smoothed inverse document frequencies ln((1 + n) / (1 + df)) + 1 over all n active entries, whatever
    their scope.
    """

    def __init__(self, entries: Iterable[Entry], config: TfidfConfig) -> None:
        active = (entry for entry in entries if entry.active)
        # In the order that decides between equal scores: the later edit first, then the lower id.
        self._entries = sorted(active, key=lambda entry: (-entry.edited, entry.id))
        self._config = config
        self._fields: list[_Field] = []
        self._matrix = self._fit()
        self._pools: dict[str | None, tuple[list[int], Any]] = {}

    def search(self, query: str, scope: str) -> list[Hit]:
        """At most k entries with a positive score, best first; equal scores: later edit, then lower id.

        With ``config.scoped`` only entries of this scope, and those without one, are searched, and the words that
        name the scope do not count: every entry of the pool has them, so they would only bring in what has nothing
        else to do with the query.
        """
        if not self._fields:
            return []
        rows, matrix = self._pool(scope if self._config.scoped else None)
        # Rounded, so that entries with the same words tie whatever the order of summation.
        scores = (matrix @ self._vector(query, self._scope_words(scope))).round(12)
        best = np.argsort(-scores, kind="stable")[: self._config.k]
        return [Hit(self._entries[rows[i]], float(scores[i])) for i in best if scores[i] > 0]

    def _fit(self) -> Any:
        """Entries x words of all fields side by side; a block's rows have the root of its weight as their norm."""
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer

        blocks: list[Any] = []
        for name, weight in self._config.weights:
            texts = [getattr(entry, name) for entry in self._entries]
            if weight > 0 and any(map(WORD.search, texts)):
                vectorizer = TfidfVectorizer(token_pattern=WORD.pattern)
                blocks.append(vectorizer.fit_transform(texts) * weight**0.5)
                start = sum(block.shape[1] for block in blocks[:-1])
                self._fields.append(_Field(vectorizer.vocabulary_, vectorizer.idf_, start, weight**0.5))
        return hstack(blocks, format="csr") if blocks else None

    def _scope_words(self, scope: str) -> set[str]:
        return set(WORD.findall(scope.lower())) if self._config.scoped else set()

    def _vector(self, query: str, without: set[str]) -> npt.NDArray[np.float64]:
        """The query in the columns of the matrix. By hand, since four calls of a vectorizer take milliseconds."""
        counts = Counter(word for word in WORD.findall(query.lower()) if word not in without)
        vector = np.zeros(self._matrix.shape[1])
        for field in self._fields:
            columns = {field.columns[word]: count for word, count in counts.items() if word in field.columns}
            if columns:
                at = np.fromiter(columns, int)
                values = np.fromiter(columns.values(), float) * field.idf[at]
                vector[field.start + at] = field.scale * values / np.linalg.norm(values)
        return vector

    def _pool(self, scope: str | None) -> tuple[list[int], Any]:
        """Rows that may be returned, all of them for None, and their part of the matrix."""
        if scope not in self._pools:
            rows = [row for row, entry in enumerate(self._entries) if scope is None or entry.scope in (scope, "")]
            self._pools[scope] = rows, self._matrix[rows]
        return self._pools[scope]
