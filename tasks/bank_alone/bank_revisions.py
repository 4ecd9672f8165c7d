"""Revisions of a bank that stands alone: numbered files, each of which names the versions of the bank's tables.

The appearance of a file is the commit. A writer that is killed before leaves tables that no revision names; the next
writer restores them.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from coevo.lineage.atomic_files import write_atomically
from coevo.memory.bank.change import SCHEMAS
from coevo.memory.validate import SOURCE, vet
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class BankRevision:
    """One revision of a bank that stands alone.

    Attributes:
        number: counted from 0, the empty bank.
        action: method of ``StandaloneBank`` that made it, or ``rollback``; ``create`` for the empty bank.
        note: outcome in a few words.
        versions: Lance version of each table.
        tables: content hash of each table.
        candidates: lessons that wait to be judged.
        trajectories: ids of the trajectories that wait for a writer.
    """

    number: int
    action: str
    note: str
    versions: dict[str, int]
    tables: dict[str, str]
    candidates: tuple[Entry, ...] = ()
    trajectories: tuple[str, ...] = ()


_READ = TypeAdapter(BankRevision)


class BankRevisions:
    """The files of all revisions in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def latest(self, since: int = -1) -> int:
        """Number of the newest revision, from a known one on; -1 without any."""
        # Asking for the next file costs microseconds, listing all of them milliseconds.
        if since < 0 or not self._file(since).exists():  # the known one was pruned meanwhile
            since = self.first() - 1
        while self._file(since + 1).exists():
            since += 1
        return since

    def first(self) -> int:
        """Number of the oldest revision that is kept; 0 without any."""
        return min(self._numbers(), default=0)

    def require_all(self) -> None:
        """Make sure that no revision is missing before the newest, since it would hide all that follow.

        Raises:
            CoevoError: one is missing.
        """
        latest = self.latest()
        if latest < max(self._numbers(), default=-1):
            raise CoevoError(f"{self._file(latest + 1)} is missing: copy it back from a backup")

    def prune(self, before: int) -> None:
        """Remove the revisions before one, the oldest first, so that a kill leaves no gap."""
        for number in range(self.first(), before):
            self._file(number).unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.json") if path.stem.isdecimal()]

    def read(self, number: int) -> BankRevision:
        """Read a revision.

        Raises:
            CoevoError: it does not exist, or its file is damaged.
        """
        file = self._file(number)
        try:
            found = _READ.validate_json(file.read_bytes())
        except FileNotFoundError:
            if number < self.first():
                raise CoevoError(f"revision {number} was pruned: the first one is {self.first()}") from None
            raise CoevoError(f"revision {number} does not exist: the last one is {self.latest()}") from None
        except ValidationError as error:
            raise CoevoError(f"{file}: {error.errors()[0]['msg']}: copy it back from a backup") from None
        named = all(SOURCE.fullmatch(name) for name in found.trajectories)
        if found.number != number or not named or not set(SCHEMAS) == set(found.versions) == set(found.tables):
            raise CoevoError(f"{file}: is not revision {number} of a bank: copy it back from a backup")
        for entry in found.candidates:
            vet({**asdict(entry), "sources": list(entry.sources)}, f"{file} candidate {entry.id}")
        return found

    def commit(self, revision: BankRevision) -> None:
        """Write a revision; from then on all readers see it."""
        self._folder.mkdir(exist_ok=True)
        write_atomically(self._file(revision.number), json.dumps(asdict(revision), ensure_ascii=False))

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:08d}.json"
