"""The directory of a bank that stands alone: tables, revisions and the writer's lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.lineage.atomic_files import lacking
from coevo.lineage.lock import if_free
from coevo.memory.bank.bank import Bank, StoredBank
from coevo.memory.bank.change import BankChange
from coevo.memory.retrieval.index import Index
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import BankContent
from coevo.tasks.bank_alone.bank_revisions import BankRevision, BankRevisions
from coevo.utilities.errors import CoevoError

TABLES, REVISIONS, LOCK = "tables", "revisions", "lock"
"""Contents of the directory."""


class BankStore:
    """One directory, created if missing.

    Args:
        path: the directory.
        config: of retrieval.

    Attributes:
        revisions: the records of all revisions.

    Raises:
        CoevoError: the directory holds something else, or the bank is damaged.
    """

    def __init__(self, path: Path, config: AnyRetrievalConfig) -> None:
        self._path = path
        self._shared = Index((), config)  # before anything is written: a model may be missing
        self.revisions = BankRevisions(path / REVISIONS)
        self._require_bank()
        self.revisions.require_all()
        if self.revisions.latest() < 0:
            self._create()
        self._content = self._latest(self.revisions.latest())

    def newest(self) -> BankContent:
        """Content of the newest revision, whichever process made it."""
        number = self.revisions.latest(self._content.revision.number)
        if number != self._content.revision.number:
            self._content = self._latest(number)
        return self._content

    def read(self, number: int) -> BankContent:
        """Content of a revision.

        Raises:
            CoevoError: there is no such revision, or it is damaged.
        """
        if type(number) is not int or number < 0:
            raise CoevoError(f"revision = {number!r}: is no revision: write a whole number from 0 on")
        revision = self.revisions.read(number)
        try:
            view = StoredBank(self._path / TABLES).at(revision.versions, revision.tables)
            entries, stats = view.active(), view.stats()
        except CoevoError as error:
            raise CoevoError(
                f"{self._path}: revision {number} cannot be read: copy the directory back from a backup"
            ) from error
        # An index recognizes entries by identity, so those that are the same cost nothing.
        held = {entry.id: entry for entry in self._shared.library.entries}
        same = [held[entry.id] if held.get(entry.id) == entry else entry for entry in entries]
        return BankContent(revision, view, self._shared.over(same, stats), stats)

    @contextmanager
    def writing(self) -> Iterator[BankContent]:
        """Content of the newest revision, while no other process can add one.

        Raises:
            CoevoError: another process is about to.
        """
        with self._locked():
            yield self.newest()

    def commit(
        self, before: BankContent, action: str, note: str, change: BankChange, candidates: tuple[Entry, ...]
    ) -> None:
        """Write a change of the newest revision as the next one, within ``writing``."""
        bank = Bank(self._path / TABLES)
        bank.restore(before.revision.versions, before.revision.tables)  # a killed writer may have left more
        bank.merge(change)
        number = before.revision.number + 1
        self.revisions.commit(BankRevision(number, action, note, bank.versions(), bank.hashes(), candidates))

    def roll_back(self, before: BankContent, target: BankRevision) -> None:
        """Write the content of an earlier revision as the next one, within ``writing``."""
        bank = Bank(self._path / TABLES)
        bank.restore(target.versions, target.tables)
        number, note = before.revision.number + 1, f"to revision {target.number}"
        self.revisions.commit(BankRevision(number, "rollback", note, bank.versions(), bank.hashes(), target.candidates))

    def _latest(self, number: int) -> BankContent:
        content = self.read(number)
        self._shared = content.index
        return content

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with if_free(self._path / LOCK) as free:
            if not free:
                raise CoevoError(f"{self._path}: another process changes this bank: try again when it has finished")
            yield

    def _require_bank(self) -> None:
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            # Hidden files are those of file managers, and of a creation that was killed.
            visible = {path.name for path in self._path.iterdir() if not path.name.startswith(".")}
            others = visible - {TABLES, REVISIONS, LOCK}
        except OSError as error:
            raise CoevoError(f"{self._path}: {error.strerror}: name a directory that can be written to") from None
        if others:
            raise CoevoError(f"{self._path}: is no bank, it holds {min(others)!r}: name a new or an empty directory")

    def _create(self) -> None:
        missing = lacking(self._path)
        if missing is not None:
            raise CoevoError(f"{self._path}: its file system has no {missing}: name a directory on another one")
        with self._locked():
            if self.revisions.latest() < 0:
                bank = Bank(self._path / TABLES)
                self.revisions.commit(BankRevision(0, "create", "", bank.versions(), bank.hashes()))
