"""The lineage of a run: a linear history of revisions, each holding all that is needed to go on from it.

The commit protocol. One writer a run, under the run's lock; the git commit is the only commit point. Before it, the
bank's tables and the work tree may be ahead of the last revision; ``recover`` takes them back. After it, whatever is
missing (tags, publication) follows from the commit alone.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from configs.errors import CoevoError
from lineage.manifest import Manifest, write_manifest
from lineage.repository import Repository
from lineage.retention import ranges
from lineage.snapshot import Snapshot
from lineage.tree import MANIFEST

OWN = ("timestamp", "metrics", "branched_from")
"""What is observed of one revision alone, so that a rollback does not repeat it."""
PLACE = ("revision", "parent")
"""The place of a revision in its history."""


@dataclass(frozen=True)
class Recovery:
    """What ``recover`` mended; everything empty after a clean stop.

    Attributes:
        locks: lock files that a killed process left.
        files: files of the work tree that were not the last revision's.
        tables: tables of the bank that were not.
        artifacts: artifacts that were not.
        tags: tags that were missing.
    """

    locks: tuple[str, ...]
    files: tuple[str, ...]
    tables: tuple[str, ...]
    artifacts: tuple[str, ...]
    tags: tuple[str, ...]

    def __bool__(self) -> bool:
        return any((self.locks, self.files, self.tables, self.artifacts, self.tags))


class Lineage:
    """Revisions of one run. Reading is safe beside a writer; commit, recover and rollback need the run's lock."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    @classmethod
    def open(cls, root: Path, cache: Path) -> Self:
        """The lineage at ``root``, its artifacts in ``cache``; one without revisions is made where there is none."""
        return cls(Repository(root, cache))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._repository.artifacts.close()

    def head(self) -> Manifest | None:
        """The last revision, if there is one."""
        commits = self._repository.commits()[-1:]
        return self._repository.manifests(commits)[0] if commits else None

    def manifest(self, revision: int) -> Manifest:
        """One revision by its number.

        Raises:
            CoevoError: there is no such revision.
        """
        return self._repository.manifests([self.commit_hash(revision)])[0]

    def log(self, after: int = -1) -> list[Manifest]:
        """Revisions above ``after``, oldest first."""
        return self._repository.manifests(self._repository.commits()[after + 1 :])

    def commits(self) -> list[str]:
        """The git commit of every revision, by revision number."""
        return self._repository.commits()

    def commit_hash(self, revision: int) -> str:
        """The git commit of a revision.

        Raises:
            CoevoError: there is no such revision.
        """
        commits = self._repository.commits()
        if not 0 <= revision < len(commits):
            has = f"it has 0 to {len(commits) - 1}" if commits else "it has none yet"
            raise CoevoError(f"revision {revision} is not in {self._repository.root}: {has}")
        return commits[revision]

    def retained(self) -> list[int]:
        """Revisions that are kept whole; of the others only commit and manifest are sure to be there."""
        dropped = self._repository.tags.dropped()
        return [revision for revision in range(len(self.commits())) if revision not in dropped]

    def require(self, revision: int) -> None:
        """Make sure that a revision is kept whole.

        Raises:
            CoevoError: there is no such revision, or it was dropped.
        """
        self.commit_hash(revision)
        kept = self.retained()
        if revision not in kept:
            run = self._repository.root.parent.name
            raise CoevoError(f"revision {revision} of run {run!r} was dropped by gc: kept ones are {ranges(kept)}")

    def drop(self, revisions: Sequence[int]) -> None:
        """Keep these revisions no longer. Their artifacts and tables may go from now on; history stays as it is."""
        self._repository.tags.drop(revisions, self.commits())

    def settle(self) -> list[str]:
        """Wait for what a killed process had git do, and remove the locks that it left; their names."""
        return self._repository.git.settle()

    def names(self) -> dict[str, int]:
        """Revision by tag, for the tags that users gave."""
        numbers = {commit: revision for revision, commit in enumerate(self.commits())}
        return {name: numbers[commit] for name, commit in self._repository.tags.named().items() if commit in numbers}

    def tag(self, revision: int, name: str) -> None:
        """Name a revision, which keeps it whole.

        Raises:
            CoevoError: there is no such revision, it was dropped, or the name is malformed or taken.
        """
        self.require(revision)
        self._repository.tags.add(name, self.commit_hash(revision))

    def untag(self, name: str) -> None:
        """Take a name away; the revision stays until a gc that nothing else keeps it from.

        Raises:
            CoevoError: there is no such name.
        """
        self._repository.tags.delete(name)

    def path(self, artifact: str) -> Path:
        """An artifact of the last revision, to be read only: its files may be links into the cache."""
        return self._repository.root / artifact

    def commit(self, artifacts: Mapping[str, Path], state: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        """Make a revision of staged artifacts, which are moved in, and of what the caller knows of the rest.

        Args:
            artifacts: staged file or directory of each artifact; one left out stays what it was.
            state: fields of the manifest's state other than revision, parent, restored_from and artifacts.
            observed: fields of the manifest's observed; the timestamp is now unless given.

        Raises:
            CoevoError: a number is not finite, or git or DVC failed; the last revision stays as it was.
        """
        Manifest.of(state, observed)
        head = self.head()
        kept = head.artifacts if head else {}
        hashes = {**kept, **self._repository.artifacts.add(artifacts)}
        return self._seal(head, {"restored_from": None, **state, "artifacts": hashes}, observed)

    def recover(self, bank: Snapshot) -> Recovery:
        """Take everything back to the last revision, before anything else is done with the run.

        Before revision 0 there is no content that the bank could be taken back to: its owner starts an empty one.

        Raises:
            CoevoError: a table or an artifact of the last revision cannot be brought back.
        """
        locks, files = self._clear()
        head = self.head()
        tables, changed = self._bring_back(head, bank) if head else ([], [])
        return Recovery(tuple(locks), tuple(files), tuple(tables), tuple(changed), tuple(self._repository.retag()))

    def rollback(self, to: int, bank: Snapshot) -> Manifest:
        """Make a new revision with all state of revision ``to``, its iteration included; history stays.

        A repetition, as after a kill, makes none: it returns the last revision, recovered. The last revision need not
        be whole, so this is also the way out where ``recover`` finds it damaged.

        Raises:
            CoevoError: there is no such revision, it was dropped, or a part of it cannot be brought back.
        """
        self._clear()
        self.require(to)
        head, target = self.head(), self.manifest(to)
        if head is not None and head.state == _restored(target) | {name: head.state[name] for name in PLACE}:
            with suppress(CoevoError):  # a damaged one is made anew
                self.recover(bank)
                return head
        with self._naming(to):
            self._repository.artifacts.check(target.artifacts)
            _restore(bank, target)
            self._repository.check_out(self.commit_hash(to))
        last = head.observed if head else {}
        observed = {key: value for key, value in last.items() if key not in OWN}
        return self._seal(head, _restored(target), {**observed, "tables": dict(bank.versions())})

    def branch(self, source: "Lineage", revision: int) -> None:
        """Take over another run's history up to a revision, with its work tree; this lineage is still empty.

        Raises:
            CoevoError: there is no such revision, it was dropped, or an artifact of it cannot be brought back.
        """
        source.require(revision)
        self._repository.follow(source._repository, source.commits()[: revision + 1])

    def diverge(self, changed: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        """Make a new revision with all state of the last one but for what ``changed`` says of it."""
        head = self.head()
        assert head is not None
        return self._seal(head, {**head.state, "restored_from": head.revision, **changed}, observed)

    def materialise(self, revision: int, artifact: str, into: Path) -> Path:
        """Put an artifact of any revision at ``into``, straight from the cache; the run's tree is not touched.

        Raises:
            CoevoError: there is no such revision or artifact, it was dropped, or ``into`` is already there.
        """
        self.require(revision)
        artifacts = self.manifest(revision).artifacts
        if artifact not in artifacts:
            raise CoevoError(f"revision {revision} has no artifact {artifact!r}: it has {', '.join(sorted(artifacts))}")
        if into.exists():
            raise CoevoError(f"{into}: already there: name a new directory")
        with self._naming(revision):
            self._repository.artifacts.check({artifact: artifacts[artifact]})
            self._repository.artifacts.materialise(artifacts[artifact], into)
        return into

    def files(self, manifest: Manifest, artifact: str) -> dict[str, Path]:
        """Files of an artifact where the cache keeps them, by relative path, to be read only; nothing is copied.

        Raises:
            CoevoError: it is not whole.
        """
        with self._naming(manifest.revision):
            content = {artifact: manifest.artifacts[artifact]}
            self._repository.artifacts.check(content)
            return self._repository.artifacts.files(content[artifact])

    def _clear(self) -> tuple[list[str], list[str]]:
        """Locks and files that a killed process left: removed."""
        repository = self._repository
        locks = [*self.settle(), *repository.artifacts.discard_locks()]
        return locks, repository.reset()

    def _bring_back(self, head: Manifest, bank: Snapshot) -> tuple[list[str], list[str]]:
        """Tables and artifacts that were not the last revision's: restored."""
        with self._naming(head.revision):
            tables = _restore(bank, head)
            changed = self._repository.artifacts.checkout()
            self._repository.artifacts.check_tree(head.artifacts)
        return tables, changed

    @contextmanager
    def _naming(self, revision: int) -> Iterator[None]:
        """Say of which revision something is beyond repair."""
        try:
            yield
        except CoevoError as error:
            run = self._repository.root.parent.name
            raise CoevoError(f"run {run!r}, revision {revision}: {error}") from error

    def _seal(self, head: Manifest | None, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        position = {"revision": head.revision + 1, "parent": head.revision} if head else {"revision": 0, "parent": None}
        manifest = Manifest.of({**state, **position}, {"timestamp": time.time_ns() // 1_000_000, **observed})
        write_manifest(manifest, self._repository.root / MANIFEST)
        self._repository.seal(manifest)
        return manifest


def _restored(target: Manifest) -> dict[str, Any]:
    """State of a rollback to a revision, but for its place."""
    return {**target.state, "restored_from": target.revision, "accepted_change": []}


def _restore(bank: Snapshot, manifest: Manifest) -> list[str]:
    touched = bank.restore(manifest.versions, manifest.tables)
    found = bank.hashes()
    lost = sorted(table for table, content in manifest.tables.items() if found.get(table) != content)
    if lost:
        raise CoevoError(f"table {', '.join(lost)} cannot be brought back: go on from another one, `coevo rollback`")
    return touched
