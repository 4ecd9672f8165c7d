"""Retrieval in which each scope is scored by itself: no word of another scope counts.

In one index, how rare a word is depends on all entries. The scores of one user's lessons would then tell which words
the lessons of another user have.
"""

from collections.abc import Iterable, Mapping, Sequence

from coevo.configs.bank.retrieval_config import EmbeddingConfig
from coevo.memory.library import Library
from coevo.memory.retrieval.index import Hit, Index
from coevo.memory.stats import Stats
from coevo.records.entry import Entry

MAX_SCOPES = 64
"""Most scopes whose index is kept; that of another one is built anew when it is asked."""


class ScopedIndex:
    """Index of a bank.

    Args:
        whole: index of all active entries.
        earlier: indices of scopes in an earlier version, which make those of this one cheap.
    """

    def __init__(self, whole: Index, earlier: Mapping[str, Index] | None = None) -> None:
        self._whole = whole
        self._earlier = dict(earlier or {})
        self._scopes: dict[str, Index] = {}

    @property
    def library(self) -> Library:
        """All active entries."""
        return self._whole.library

    def over(self, entries: Iterable[Entry], stats: Mapping[str, Stats] | None = None) -> "ScopedIndex":
        """Index over another version of the bank."""
        known = list({**self._earlier, **self._scopes}.items())
        return ScopedIndex(self._whole.over(entries, stats), dict(known[-MAX_SCOPES:]))

    def search(self, query: str, scope: str, k: int | None = None) -> list[Hit]:
        """The best entries of a scope and of those without scope, best first; ``k`` replaces the configured number."""
        library = self.library
        rows, everywhere = library.rows(scope), library.rows("")
        if len(rows) == len(everywhere):
            scope = ""  # no entry has it: nothing is kept for a name that somebody made up
        if len(rows) == len(library) or isinstance(self._whole.config, EmbeddingConfig):
            return self._whole.search(query, scope, k=k)
        return self._index(scope, library.some(rows)).search(query, scope, k=k)

    def lacking(self, scope: str, hits: Sequence[Hit]) -> str:
        """Reason why a search found no entry of a scope itself, in one line; empty if it did.

        It names no other scope: others may not know that it exists.
        """
        if any(hit.entry.scope == scope for hit in hits):
            return ""
        if len(self.library.rows(scope)) == len(self.library.rows("")) and scope:
            return "the bank has no lesson of this scope"
        return f"no lesson {'of this' if scope else 'without a'} scope matches the query"

    def _index(self, scope: str, entries: list[Entry]) -> Index:
        found = self._scopes.pop(scope, None)
        if found is None:
            before = self._earlier.get(scope)
            found = Index(entries, self._whole.config) if before is None else before.over(entries)
        self._scopes[scope] = found  # the last asked is the last dropped
        if len(self._scopes) > MAX_SCOPES:
            del self._scopes[next(iter(self._scopes))]
        return found
