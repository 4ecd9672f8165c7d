"""Reading a bank that stands alone: retrieval, entries, candidates, and the report on its health."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coevo.memory.bank.bank import BankView
from coevo.memory.exchange.exchange import write_entries
from coevo.memory.retrieval.index import Hit, Index
from coevo.memory.stats import Stats
from coevo.memory.validate import shortened
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_health import BankHealth, bank_health, measured_gains
from coevo.tasks.bank_alone.bank_revisions import BankRevision
from coevo.tasks.bank_alone.new_lesson import ScopeName, scope_text
from coevo.utilities.errors import CoevoError

MOST_RESULTS = 1000
"""Most entries that a query returns."""


@dataclass(frozen=True, slots=True)
class BankContent:
    """Content of one revision.

    Attributes:
        revision: its record.
        view: its tables.
        index: index of its active entries.
        stats: counters by entry id.
    """

    revision: BankRevision
    view: BankView
    index: Index
    stats: Mapping[str, Stats]


class Retriever:
    """Retrieval from entries that do not change.

    Args:
        index: of the entries.
    """

    def __init__(self, index: Index) -> None:
        self._searched = index

    def retrieve(self, query: str, scope: ScopeName = "", k: int | None = None) -> list[Hit]:
        """Entries of a scope, and entries without scope, that match a query best.

        Args:
            query: task or question in words.
            scope: text, or names of user, agent and task; entries of other scopes are never returned.
            k: most results; by default, that of ``open_bank``.

        Returns:
            At most ``k`` pairs of ``entry`` and ``score``, best first.

        Raises:
            CoevoError: an argument is not acceptable.
        """
        if not isinstance(query, str):
            raise CoevoError(f"query = {shortened(query)}: is no text: write the task in words")
        if k is not None:
            require_k(k)
        return self._index().search(query, scope_text(scope), k=k)

    def _index(self) -> Index:
        return self._searched


class BankReader(Retriever):
    """A revision of a bank, read-only (``StandaloneBank.at``).

    Args:
        content: of the revision.
    """

    def __init__(self, content: BankContent) -> None:
        super().__init__(content.index)
        self._content = content

    @property
    def revision(self) -> BankRevision:
        """Record of the revision that is read."""
        return self._now().revision

    def entries(self) -> list[Entry]:
        """Active entries, the last edited first."""
        return list(self._now().index.library.entries)

    def candidates(self) -> list[Entry]:
        """Lessons that wait to be judged, the first proposed first; retrieval does not return them."""
        return list(self._now().revision.candidates)

    def stats(self) -> dict[str, Stats]:
        """Counters by entry id; an entry that no outcome has seen has none."""
        return dict(self._now().stats)

    def health(self) -> BankHealth:
        """Report on entries that are never retrieved, near-duplicates, contradictions, and the share that was tested.

        With 10,000 entries of one scope this takes seconds.
        """
        now = self._now()
        return bank_health(now.index.library.entries, now.stats, measured_gains(now.view))

    def export(self, path: Path | str) -> int:
        """Write the active entries to a new file (``.jsonl`` or ``.parquet``), which ``coevo bank import`` reads.

        Returns:
            Number of entries.

        Raises:
            CoevoError: the file exists, has another suffix, or cannot be written.
        """
        return write_entries(self._now().index.library.entries, Path(path))

    def _now(self) -> BankContent:
        return self._content

    def _index(self) -> Index:
        return self._now().index


def require_k(k: object) -> None:
    """Make sure that a number of results is acceptable.

    Raises:
        CoevoError: it is not.
    """
    if type(k) is not int or not 0 <= k <= MOST_RESULTS:
        raise CoevoError(f"k = {shortened(k)}: is no number of results: write a whole number from 0 to {MOST_RESULTS}")
