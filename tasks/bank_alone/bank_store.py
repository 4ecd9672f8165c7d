"""The directory of a bank that stands alone: tables, revisions and the writer's lock."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.lineage.atomic_files import OF_BANKS, lacking
from coevo.lineage.lock import if_free
from coevo.memory.bank.bank import Bank, StoredBank
from coevo.memory.bank.change import SCHEMAS, BankChange
from coevo.memory.bank.table_retention import prove, surplus
from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import BankContent
from coevo.tasks.bank_alone.bank_revisions import BankRevision, BankRevisions
from coevo.tasks.bank_alone.chat_trajectory import TrajectoryFiles
from coevo.tasks.bank_alone.scoped_index import ScopedIndex
from coevo.utilities.errors import CoevoError

TABLES, REVISIONS, TRAJECTORIES, LOCK = "tables", "revisions", "trajectories", "lock"
"""Contents of the directory."""


MAX_WAITING = 1000
"""Most lessons that wait to be judged, and most trajectories that wait for a writer: each revision names them all."""


class BusyError(CoevoError):
    """Another process changes the bank."""


class DirectoryError(CoevoError):
    """The directory of the bank is damaged, whatever the caller asks for; names files."""


class BankFullError(CoevoError):
    """More items would wait than the whole bank takes."""


@dataclass(frozen=True, slots=True)
class WaitingQuota:
    """Limit on the items that wait in some scopes, below that of the whole bank.

    Attributes:
        counts: True for the text of one of these scopes.
        most: lessons, and likewise trajectories, that may wait in them.
    """

    counts: Callable[[str], bool]
    most: int

    def require(self, scopes: Sequence[str], items: str) -> None:
        """Make sure that items of these scopes may wait together.

        Raises:
            CoevoError: too many are of the scopes that count.
        """
        if sum(map(self.counts, scopes)) > self.most:
            raise CoevoError(f"more than {self.most} {items} of these names would wait: send more once fewer wait")


@dataclass(frozen=True, slots=True)
class UndecidedItems:
    """Candidates and trajectories that wait from a revision on; None for those that stay as they were.

    Attributes:
        candidates: lessons that wait to be judged.
        trajectories: ids of the trajectories that wait for a writer.
    """

    candidates: tuple[Entry, ...] | None = None
    trajectories: tuple[str, ...] | None = None


KEPT = UndecidedItems()
"""All that waits stays."""


class BankStore:
    """One directory, created if missing.

    Args:
        path: the directory.
        config: of retrieval.

    Attributes:
        path: the directory.
        revisions: the records of all revisions.
        trajectories: the files of the recorded trajectories.

    Raises:
        CoevoError: the directory holds something else, or the bank is damaged.
    """

    def __init__(self, path: Path, config: AnyRetrievalConfig) -> None:
        self.path = path
        self._shared = ScopedIndex(Index((), config))  # before anything is written: a model may be missing
        self.revisions = BankRevisions(path / REVISIONS)
        self.trajectories = TrajectoryFiles(path / TRAJECTORIES)
        self._require_bank()
        self.revisions.require_all()
        if self.revisions.latest() < 0:
            self._create()
        self._content = self._latest(self.revisions.latest())

    def newest(self) -> BankContent:
        """Content of the newest revision, whichever process made it.

        Raises:
            DirectoryError: it is damaged.
        """
        number = self.revisions.latest(self._content.revision.number)
        if number != self._content.revision.number:
            with _damaged():
                self._content = self._latest(number)
        return self._content

    def scopes_of(self, trajectories: Sequence[str]) -> list[str]:
        """Scopes of the trajectories with these ids.

        Raises:
            DirectoryError: one is missing or damaged.
        """
        with _damaged():
            return self.trajectories.scopes(trajectories)

    def read(self, number: int) -> BankContent:
        """Content of a revision.

        Raises:
            CoevoError: there is no such revision, or it is damaged.
        """
        if type(number) is not int or number < 0:
            raise CoevoError(f"revision = {number!r}: is no revision: write a whole number from 0 on")
        revision = self.revisions.read(number)
        try:
            view = StoredBank(self.path / TABLES).at(revision.versions, revision.tables)
            entries, stats = view.active(), view.stats()
        except CoevoError as error:
            raise CoevoError(
                f"{self.path}: revision {number} cannot be read: copy the directory back from a backup"
            ) from error
        # An index recognizes entries by identity, so those that are the same cost nothing.
        held = {entry.id: entry for entry in self._shared.library.entries}
        same = [held[entry.id] if held.get(entry.id) == entry else entry for entry in entries]
        return BankContent(revision, view, self._shared.over(same, stats), stats)

    @contextmanager
    def writing(self) -> Iterator[BankContent]:
        """Content of the newest revision, while no other process can add one.

        Raises:
            BusyError: another process is about to.
        """
        with self._locked():
            yield self.newest()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process write from trajectories; those that change the bank otherwise may go on.

        Raises:
            BusyError: another process writes.
        """
        with if_free(self.path / ".writing") as free:
            if not free:
                raise BusyError(f"{self.path}: another process writes lessons: try again when it has finished")
            yield

    def commit(
        self, before: BankContent, action: str, note: str, change: BankChange, waiting: UndecidedItems = KEPT
    ) -> None:
        """Write a change of the newest revision as the next one, within ``writing``.

        Args:
            before: the newest revision.
            action: method that makes the change.
            note: outcome in a few words.
            change: of the tables.
            waiting: candidates and trajectories that wait from now on; None where they stay.

        Raises:
            DirectoryError: the tables are damaged.
        """
        bank = Bank(self.path / TABLES)
        with _damaged():
            bank.restore(before.revision.versions, before.revision.tables)  # a killed writer may have left more
            bank.merge(change)
        old = before.revision
        candidates = old.candidates if waiting.candidates is None else waiting.candidates
        trajectories = old.trajectories if waiting.trajectories is None else waiting.trajectories
        self._commit(bank, old.number + 1, action, note, candidates, trajectories)

    def roll_back(self, before: BankContent, target: BankRevision) -> None:
        """Write the content of an earlier revision as the next one, within ``writing``."""
        bank = Bank(self.path / TABLES)
        bank.restore(target.versions, target.tables)
        number, note = before.revision.number + 1, f"to revision {target.number}"
        self._commit(bank, number, "rollback", note, target.candidates, target.trajectories)

    def prune(self, before: BankContent, keep: int) -> int:
        """Remove all but the last revisions, with what only they need, within ``writing``; return the oldest left."""
        first = max(self.revisions.first(), before.revision.number - keep + 1)
        staying = [self.revisions.read(number) for number in range(first, before.revision.number + 1)]
        kept = {name: {each.versions[name]: each.tables[name] for each in staying} for name in SCHEMAS}
        prove(self.path / TABLES, kept, self.path / ".pruning")
        self.revisions.prune(first)
        for path in surplus(self.path / TABLES, kept):
            path.unlink(missing_ok=True)
        self.trajectories.remove_except(name for each in staying for name in each.trajectories)
        return first

    def _commit(
        self, bank: Bank, number: int, action: str, note: str, candidates: tuple[Entry, ...], waiting: tuple[str, ...]
    ) -> None:
        self.revisions.commit(BankRevision(number, action, note, bank.versions(), bank.hashes(), candidates, waiting))

    def _latest(self, number: int) -> BankContent:
        content = self.read(number)
        self._shared = content.index
        return content

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with if_free(self.path / LOCK) as free:
            if not free:
                raise BusyError(f"{self.path}: another process changes this bank: try again when it has finished")
            yield

    def _require_bank(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Hidden files are those of file managers, and of a creation that was killed.
            visible = {path.name for path in self.path.iterdir() if not path.name.startswith(".")}
            others = visible - {TABLES, REVISIONS, TRAJECTORIES, LOCK}
        except OSError as error:
            raise CoevoError(f"{self.path}: {error.strerror}: name a directory that can be written to") from None
        if others:
            raise CoevoError(f"{self.path}: is no bank, it holds {min(others)!r}: name a new or an empty directory")

    def _create(self) -> None:
        missing = lacking(self.path, OF_BANKS)
        if missing is not None:
            raise CoevoError(f"{self.path}: its file system has no {missing}: name a directory on another one")
        with self._locked():
            if self.revisions.latest() < 0:
                bank = Bank(self.path / TABLES)
                self.revisions.commit(BankRevision(0, "create", "", bank.versions(), bank.hashes()))


@contextmanager
def _damaged() -> Iterator[None]:
    """Tell errors of what the directory holds from those of what a caller asks for."""
    try:
        yield
    except CoevoError as error:
        raise DirectoryError(str(error)) from error
