"""The lineage of a run: a linear history of revisions, each with everything that is needed to continue from it.

The commit protocol: one writer per run, under the run's lock; the git commit is the only commit point. Before it, the
bank's tables and the work tree may be ahead of the last revision; ``recover`` resets them. After it, everything that is
missing (tags, publication) follows from the commit alone.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from coevo.lineage.lock import cache_lock
from coevo.lineage.objects.cache import Cache
from coevo.lineage.repository import Repository
from coevo.lineage.revision.commit_tree import MANIFEST
from coevo.lineage.revision.manifest import Manifest, write_manifest
from coevo.lineage.revision.sparse import until_next
from coevo.lineage.revision.versioned_store import Snapshot, restore
from coevo.lineage.run_history import RevisionArtifacts, RunHistory
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


class Lineage:
    """Lineage of one run. Reading is safe during a write; commit, recover and rollback need the run's lock.

    Attributes:
        history: its revisions, for reading.
        artifacts: the artifacts of its revisions, for reading.
        tags: names of its revisions, and marks of those that are no longer kept whole.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.history = RunHistory(repository)
        self.artifacts = RevisionArtifacts(repository, self.history)
        self.tags = repository.tags

    @classmethod
    def open(cls, root: Path, cache: Path) -> Self:
        """Open the lineage at ``root`` with its artifacts in ``cache``; create an empty one if none exists."""
        return cls(Repository(root, cache))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._repository.artifacts.close()

    def settle(self) -> list[str]:
        """Wait for git commands of a killed process and remove its locks; return their names."""
        return self._repository.git.settle()

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
        head = self.history.head()
        kept = head.artifacts if head else {}
        with cache_lock(self._repository.artifacts.cache):
            hashes = {**kept, **self._repository.artifacts.add(artifacts)}
            return self._committed(head, {"restored_from": None, **state, "artifacts": hashes}, observed)

    def recover(self, bank: Snapshot) -> Recovery:
        """Reset everything to the last revision, before any other use of the run.

        Before revision 0 the bank has no content to return to: its owner starts an empty one.

        Raises:
            CoevoError: a table or an artifact of the last revision cannot be restored.
        """
        locks, files = self._clear()
        head = self.history.head()
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
        self._repository.retag()  # a kill may have left the last revision without its tag
        commit = self.history.require(to)
        head, (target,) = self.history.head(), self._repository.manifests([commit])
        state = _restored(target, without)
        if head is not None and head.state == state | {name: head.state[name] for name in PLACE if name in head.state}:
            with suppress(CoevoError):  # a damaged one is created again
                self.recover(bank)
                return head
        self.artifacts.require(to, without)
        with self.artifacts.naming(to):
            Cache(self._repository.artifacts.cache).check(state["artifacts"])
            restore(bank, target)
            self._repository.check_out(commit, without)
        last = head.observed if head else {}
        observed = {key: value for key, value in last.items() if key not in OWN}
        return self._committed(head, state, {**observed, "tables": dict(bank.versions())})

    def branch(self, source: "Lineage", revision: int, without: Collection[str] = ()) -> None:
        """Copy another run's history up to a revision, with its work tree, into this empty lineage.

        Artifacts in ``without`` are left out of the work tree, so of the next revision.

        Raises:
            CoevoError: the revision does not exist or was dropped, or one of its artifacts cannot be restored.
        """
        source.history.require(revision)
        source.artifacts.require(revision, without)
        self._repository.follow(source._repository, source.history.commits()[: revision + 1], without)

    def diverge(self, changed: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        """Create a new revision with the last one's state, updated by ``changed``, and the work tree's artifacts."""
        head = self.history.head()
        assert head is not None
        present = self._repository.artifacts.names()
        artifacts = {name: content for name, content in head.artifacts.items() if name in present}
        state = {**head.state, "restored_from": head.revision, "artifacts": artifacts, **changed}
        return self._committed(head, state, observed)

    def _clear(self) -> tuple[list[str], list[str]]:
        """Remove locks and files of a killed process and return their names."""
        repository = self._repository
        locks = [*self.settle(), *repository.artifacts.discard_locks()]
        return locks, repository.reset()

    def _bring_back(self, head: Manifest, bank: Snapshot) -> tuple[list[str], list[str]]:
        """Restore tables and artifacts that differ from the last revision and return their names."""
        with self.artifacts.naming(head.revision):
            tables = restore(bank, head)
            changed = self._repository.artifacts.checkout()
            self._repository.artifacts.check_tree(head.artifacts)
        return tables, changed

    def _committed(self, head: Manifest | None, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Manifest:
        number = head.revision + 1 if head else 0
        position = {"revision": number, "parent": head.revision if head else None}
        sparse = until_next(number, self._repository.artifacts.sizes(), state.get("config", {}))
        lasting = {name: value for name, value in state.items() if name not in PLACE}
        whole = lasting | position | ({"until_next": sparse} if sparse else {})
        manifest = Manifest.of(whole, {"timestamp": time.time_ns() // 1_000_000, **observed})
        write_manifest(manifest, self._repository.root / MANIFEST)
        self._repository.commit(manifest)
        return manifest


def _restored(target: Manifest, without: Collection[str]) -> dict[str, Any]:
    """State of a rollback to a revision, without its position and some artifacts."""
    artifacts = {name: content for name, content in target.artifacts.items() if name not in without}
    lasting = {name: value for name, value in target.state.items() if name not in PLACE}
    return {**lasting, "restored_from": target.revision, "accepted_change": [], "artifacts": artifacts}
