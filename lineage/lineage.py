"""The lineage of a run: a linear history of revisions, each with everything that is needed to continue from it.

The commit protocol: one writer per run, under the run's lock; the git commit is the only commit point. Before it, the
bank's tables and the work tree may be ahead of the last revision; ``recover`` resets them. After it, everything that is
missing (tags, publication) follows from the commit alone.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from coevo.lineage.lock import cache_lock
from coevo.lineage.repository import Repository
from coevo.lineage.revision.commit_tree import MANIFEST
from coevo.lineage.revision.manifest import Manifest, write_manifest
from coevo.lineage.revision.retention import ranges
from coevo.lineage.revision.sparse import removed, until_next
from coevo.lineage.revision.versioned_store import Snapshot, restore
from coevo.utilities.errors import CoevoError

OWN = ("timestamp", "metrics", "branched_from")
"""Fields observed of one revision only, which a rollback does not repeat."""
PLACE = ("revision", "parent", "until_next")
"""Position of a revision in its history, and what follows from it."""


@dataclass(frozen=True)
class Recovery:
    """Repairs made by ``recover``; all empty after a clean stop.

    Attributes:
        locks: lock files of a killed process.
        files: files of the work tree that differed from the last revision.
        tables: tables of the bank that differed.
        artifacts: artifacts that differed.
        tags: tags that were missing.
    """

    locks: tuple[str, ...]
    files: tuple[str, ...]
    tables: tuple[str, ...]
    artifacts: tuple[str, ...]
    tags: tuple[str, ...]

    def __bool__(self) -> bool:
        return any((self.locks, self.files, self.tables, self.artifacts, self.tags))


class Dropped(CoevoError):  # noqa: N818
    """A revision is no longer kept whole."""


class Lineage:
    """Revisions of one run. Reading is safe during a write; commit, recover and rollback need the run's lock."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    @classmethod
    def open(cls, root: Path, cache: Path) -> Self:
        """Open the lineage at ``root`` with its artifacts in ``cache``; create an empty one if none exists."""
        return cls(Repository(root, cache))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._repository.artifacts.close()

    def head(self) -> Manifest | None:
        """Last revision; None before the first."""
        return next(iter(self._repository.manifests(self._repository.commits()[-1:])), None)

    def manifest(self, revision: int) -> Manifest:
        """One revision by its number.

        Raises:
            CoevoError: the revision does not exist.
        """
        return self._repository.manifests([self.commit_hash(revision)])[0]

    def log(self, after: int = -1) -> list[Manifest]:
        """Revisions above ``after``, oldest first."""
        return self._repository.manifests(self._repository.commits()[after + 1 :])

    def commits(self) -> list[str]:
        """Git commit of every revision, by revision number."""
        return self._repository.commits()

    def commit_hash(self, revision: int) -> str:
        """Git commit of a revision.

        Raises:
            CoevoError: the revision does not exist.
        """
        return self._numbered(self._repository.commits(), revision)

    def retained(self) -> list[int]:
        """Revisions that are kept whole; of the others only commit and manifest are guaranteed."""
        dropped = self._repository.tags.dropped()
        return [revision for revision in range(len(self.commits())) if revision not in dropped]

    def dropped(self) -> set[int]:
        """Revisions that are no longer kept whole; of these, a collection may be removing parts."""
        return self._repository.tags.dropped()

    def require(self, revision: int) -> str:
        """Git commit of a revision that is kept whole.

        Raises:
            CoevoError: the revision does not exist.
            Dropped: it was dropped.
        """
        commits, dropped = self._repository.commits(), self._repository.tags.dropped()
        commit = self._numbered(commits, revision)
        if revision in dropped:
            run, kept = self._repository.root.parent.name, ranges(sorted({*range(len(commits))} - dropped))
            raise Dropped(f"revision {revision} of run {run!r} was dropped by gc: kept ones are {kept}")
        return commit

    def lost(self, revision: int) -> list[str]:
        """Artifacts of a revision that were removed when a newer one had them."""
        history, holds = self.log(), self._repository.artifacts.holds
        gone = history[revision].artifacts.keys() - history[revision].kept(len(history) - 1).keys()
        return sorted(name for name in gone if not holds(history[revision].artifacts[name]))

    def require_artifacts(self, revision: int, without: Collection[str] = ()) -> None:
        """Check that a revision has lost no artifact to a newer one, except ``without``.

        Raises:
            CoevoError: it has; names the nearest revision with that artifact.
        """
        for name in set(self.lost(revision)).difference(without):
            run = self._repository.root.parent.name
            raise CoevoError(f"run {run!r}, {removed(self.log(), self.retained(), name, revision)}")

    def sizes(self) -> dict[str, int]:
        """Bytes of each artifact of the last revision."""
        return self._repository.artifacts.sizes()

    def drop(self, revisions: Sequence[int]) -> None:
        """Stop keeping these revisions whole. Their artifacts and tables may go from now on; the history stays."""
        self._repository.tags.drop(revisions, self.commits())

    def settle(self) -> list[str]:
        """Wait for git commands of a killed process and remove its locks; return their names."""
        return self._repository.git.settle()

    def names(self) -> dict[str, int]:
        """Revision by tag, for the tags that users gave."""
        numbers = {commit: revision for revision, commit in enumerate(self.commits())}
        return {name: numbers[commit] for name, commit in self._repository.tags.named().items() if commit in numbers}

    def tag(self, revision: int, name: str) -> None:
        """Name a revision, which keeps it whole.

        Raises:
            CoevoError: the revision does not exist or was dropped, or the name is malformed or taken.
        """
        self._repository.tags.add(name, self.require(revision))

    def untag(self, name: str) -> None:
        """Remove a name; the revision stays until a gc that nothing else keeps it from.

        Raises:
            CoevoError: the name does not exist.
        """
        self._repository.tags.delete(name)

    def path(self, artifact: str) -> Path:
        """Read-only path of an artifact of the last revision: its files may be links into the cache."""
        return self._repository.root / artifact

    def commit(self, artifacts: Mapping[str, Path], state: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        """Create a revision from staged artifacts, which are moved in, and from the caller's state.

        Args:
            artifacts: staged file or directory of each artifact; an omitted one keeps its content.
            state: fields of the manifest's state other than revision, parent, restored_from and artifacts.
            observed: fields of the manifest's observed; the timestamp defaults to now.

        Raises:
            CoevoError: a number is not finite, or git or DVC failed; the last revision is unchanged.
        """
        Manifest.of(state, observed)
        head = self.head()
        kept = head.artifacts if head else {}
        with cache_lock(self._repository.artifacts.cache):
            hashes = {**kept, **self._repository.artifacts.add(artifacts)}
            return self._seal(head, {"restored_from": None, **state, "artifacts": hashes}, observed)

    def recover(self, bank: Snapshot) -> Recovery:
        """Reset everything to the last revision, before any other use of the run.

        Before revision 0 the bank has no content to return to: its owner starts an empty one.

        Raises:
            CoevoError: a table or an artifact of the last revision cannot be restored.
        """
        locks, files = self._clear()
        head = self.head()
        tables, changed = self._bring_back(head, bank) if head else ([], [])
        return Recovery(tuple(locks), tuple(files), tuple(tables), tuple(changed), tuple(self._repository.retag()))

    def rollback(self, to: int, bank: Snapshot, without: Collection[str] = ()) -> Manifest:
        """Create a new revision with all state of revision ``to``, including its iteration; the history stays.

        Artifacts in ``without`` are left out.

        A repetition, as after a kill, creates none: it returns the last revision, recovered. The last revision need not
        be whole, so this is also the way out if ``recover`` finds it damaged.

        Raises:
            CoevoError: the revision does not exist or was dropped, or a part of it cannot be restored.
        """
        self._clear()
        commit = self.require(to)
        head, (target,) = self.head(), self._repository.manifests([commit])
        state = _restored(target, without)
        if head is not None and head.state == state | {name: head.state[name] for name in PLACE if name in head.state}:
            with suppress(CoevoError):  # a damaged one is created again
                self.recover(bank)
                return head
        self.require_artifacts(to, without)
        with self._naming(to):
            self._repository.artifacts.check(state["artifacts"])
            restore(bank, target)
            self._repository.check_out(commit, without)
        last = head.observed if head else {}
        observed = {key: value for key, value in last.items() if key not in OWN}
        return self._seal(head, state, {**observed, "tables": dict(bank.versions())})

    def branch(self, source: "Lineage", revision: int, without: Collection[str] = ()) -> None:
        """Copy another run's history up to a revision, with its work tree, into this empty lineage.

        Artifacts in ``without`` are left out of the work tree, so of the next revision.

        Raises:
            CoevoError: the revision does not exist or was dropped, or one of its artifacts cannot be restored.
        """
        source.require(revision)
        source.require_artifacts(revision, without)
        self._repository.follow(source._repository, source.commits()[: revision + 1], without)

    def diverge(self, changed: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        """Create a new revision with the last one's state, updated by ``changed``, and the work tree's artifacts."""
        head = self.head()
        assert head is not None
        present = self._repository.artifacts.names()
        artifacts = {name: content for name, content in head.artifacts.items() if name in present}
        state = {**head.state, "restored_from": head.revision, "artifacts": artifacts, **changed}
        return self._seal(head, state, observed)

    def materialise(self, revision: int, artifact: str, into: Path) -> Path:
        """Write an artifact of any revision to ``into``, straight from the cache; the run's tree is not touched.

        Raises:
            CoevoError: the revision or artifact does not exist, was dropped, or ``into`` exists.
        """
        artifacts = self._repository.manifests([self.require(revision)])[0].artifacts
        if artifact not in artifacts:
            raise CoevoError(f"revision {revision} has no artifact {artifact!r}: it has {', '.join(sorted(artifacts))}")
        if into.exists():
            raise CoevoError(f"{into}: already exists: name a new directory")
        with self._naming(revision):
            self._repository.artifacts.check({artifact: artifacts[artifact]})
            self._repository.artifacts.materialise(artifacts[artifact], into)
        return into

    def files(self, manifest: Manifest, artifact: str) -> dict[str, Path]:
        """Read-only cache files of an artifact, by relative path; nothing is copied.

        Raises:
            CoevoError: it is not whole.
        """
        with self._naming(manifest.revision):
            content = {artifact: manifest.artifacts[artifact]}
            self._repository.artifacts.check(content)
            return self._repository.artifacts.files(content[artifact])

    def _numbered(self, commits: Sequence[str], revision: int) -> str:
        if not 0 <= revision < len(commits):
            has = f"it has 0 to {len(commits) - 1}" if commits else "it has none yet"
            raise CoevoError(f"revision {revision} is not in {self._repository.root}: {has}")
        return commits[revision]

    def _clear(self) -> tuple[list[str], list[str]]:
        """Remove locks and files of a killed process and return their names."""
        repository = self._repository
        locks = [*self.settle(), *repository.artifacts.discard_locks()]
        return locks, repository.reset()

    def _bring_back(self, head: Manifest, bank: Snapshot) -> tuple[list[str], list[str]]:
        """Restore tables and artifacts that differ from the last revision and return their names."""
        with self._naming(head.revision):
            tables = restore(bank, head)
            changed = self._repository.artifacts.checkout()
            self._repository.artifacts.check_tree(head.artifacts)
        return tables, changed

    @contextmanager
    def _naming(self, revision: int) -> Iterator[None]:
        """Name run and revision in an error."""
        try:
            yield
        except CoevoError as error:
            run = self._repository.root.parent.name
            raise CoevoError(f"run {run!r}, revision {revision}: {error}") from error

    def _seal(self, head: Manifest | None, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        number = head.revision + 1 if head else 0
        position = {"revision": number, "parent": head.revision if head else None}
        sparse = until_next(number, self._repository.artifacts.sizes(), state.get("config", {}))
        lasting = {name: value for name, value in state.items() if name not in PLACE}
        whole = lasting | position | ({"until_next": sparse} if sparse else {})
        manifest = Manifest.of(whole, {"timestamp": time.time_ns() // 1_000_000, **observed})
        write_manifest(manifest, self._repository.root / MANIFEST)
        self._repository.seal(manifest)
        return manifest


def _restored(target: Manifest, without: Collection[str]) -> dict[str, Any]:
    """State of a rollback to a revision, without its position and some artifacts."""
    artifacts = {name: content for name, content in target.artifacts.items() if name not in without}
    lasting = {name: value for name, value in target.state.items() if name not in PLACE}
    return {**lasting, "restored_from": target.revision, "accepted_change": [], "artifacts": artifacts}
