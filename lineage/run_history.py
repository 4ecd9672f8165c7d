"""History of a run: its revisions, and the artifacts of each. Nothing here writes to the run."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coevo.lineage.objects.cache import Cache
from coevo.lineage.repository import Repository
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import ranges
from coevo.lineage.revision.sparse import removed
from coevo.utilities.errors import CoevoError


class Dropped(CoevoError):  # noqa: N818
    """A revision is no longer kept whole."""


class RunHistory:
    """Revisions of one run, by their numbers; those that rollbacks left behind are part of it."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def head(self) -> Manifest | None:
        """Last revision; None before the first."""
        return next(iter(self._repository.manifests(self.commits()[-1:])), None)

    def manifest(self, revision: int) -> Manifest:
        """One revision by its number.

        Raises:
            CoevoError: the revision does not exist.
        """
        return self._repository.manifests([self.commit_hash(revision)])[0]

    def log(self, after: int = -1) -> list[Manifest]:
        """Revisions above ``after``, oldest first."""
        return self._repository.manifests(self.commits()[after + 1 :])

    def manifests(self, commits: Sequence[str]) -> list[Manifest]:
        """Revisions by their git commits."""
        return self._repository.manifests(commits)

    def following(self, commit: str) -> tuple[str, Manifest] | None:
        """Git commit and manifest of the last revision if it is the one right after a commit; None if it is not."""
        return self._repository.following(commit)

    def commits(self) -> list[str]:
        """Git commit of every revision, by revision number."""
        return self._repository.commits()

    def commit_hash(self, revision: int) -> str:
        """Git commit of a revision.

        Raises:
            CoevoError: the revision does not exist.
        """
        return self._numbered(self.commits(), revision)

    def names(self) -> dict[str, int]:
        """Revision by tag, for the tags that users gave."""
        numbers = {commit: revision for revision, commit in enumerate(self.commits())}
        return {name: numbers[commit] for name, commit in self._repository.tags.named().items() if commit in numbers}

    def retained(self) -> list[int]:
        """Revisions that are kept whole; of the others only commit and manifest are guaranteed."""
        dropped = self._repository.tags.dropped()
        return [revision for revision in range(len(self.commits())) if revision not in dropped]

    def require(self, revision: int) -> str:
        """Git commit of a revision that is kept whole.

        Raises:
            CoevoError: the revision does not exist.
            Dropped: it was dropped.
        """
        commits, dropped = self.commits(), self._repository.tags.dropped()
        commit = self._numbered(commits, revision)
        if revision in dropped:
            run, kept = self._repository.root.parent.name, ranges(sorted({*range(len(commits))} - dropped))
            raise Dropped(f"revision {revision} of run {run!r} was dropped by gc: kept ones are {kept}")
        return commit

    def _numbered(self, commits: Sequence[str], revision: int) -> str:
        if not 0 <= revision < len(commits):
            has = f"it has 0 to {len(commits) - 1}" if commits else "it has none yet"
            raise CoevoError(f"revision {revision} is not in {self._repository.root}: {has}")
        return commits[revision]


class RevisionArtifacts:
    """Artifacts of the revisions of one run. Their files may be links into the cache: they are only read."""

    def __init__(self, repository: Repository, history: RunHistory) -> None:
        self._repository = repository
        self._history = history
        self._cache = Cache(repository.artifacts.cache)

    def path(self, artifact: str) -> Path:
        """Path of an artifact of the last revision, in the work tree."""
        return self._repository.root / artifact

    def sizes(self) -> dict[str, int]:
        """Bytes of each artifact of the last revision."""
        return self._repository.artifacts.sizes()

    def files(self, manifest: Manifest, artifact: str) -> dict[str, Path]:
        """Cache files of an artifact, by relative path; nothing is copied.

        Raises:
            CoevoError: it is not whole.
        """
        content = manifest.artifacts[artifact]
        with self.naming(manifest.revision):
            self._cache.check({artifact: content})
            return {name: self._cache.path(oid) for name, oid in self._cache.files(content).items()}

    def materialise(self, revision: int, artifact: str, into: Path) -> Path:
        """Write an artifact of any revision to ``into``, straight from the cache; the run's tree is not touched.

        Raises:
            CoevoError: the revision or artifact does not exist, was dropped, or ``into`` exists.
        """
        artifacts = self._repository.manifests([self._history.require(revision)])[0].artifacts
        if artifact not in artifacts:
            raise CoevoError(f"revision {revision} has no artifact {artifact!r}: it has {', '.join(sorted(artifacts))}")
        if into.exists():
            raise CoevoError(f"{into}: already exists: name a new directory")
        with self.naming(revision):
            self._cache.check({artifact: artifacts[artifact]})
            self._cache.materialise(artifacts[artifact], into)
        return into

    def lost(self, revision: int) -> list[str]:
        """Artifacts of a revision that were removed when a newer one had them."""
        history = self._history.log()
        gone = history[revision].artifacts.keys() - history[revision].kept(len(history) - 1).keys()
        # The list of an artifact's files is removed before they are.
        return sorted(name for name in gone if not self._cache.path(history[revision].artifacts[name]).is_file())

    def require(self, revision: int, without: Collection[str] = ()) -> None:
        """Check that a revision has lost no artifact to a newer one, except ``without``.

        Raises:
            CoevoError: it has; names the nearest revision with that artifact.
        """
        for name in set(self.lost(revision)).difference(without):
            run, kept = self._repository.root.parent.name, self._history.retained()
            raise CoevoError(f"run {run!r}, {removed(self._history.log(), kept, name, revision)}")

    @contextmanager
    def naming(self, revision: int) -> Iterator[None]:
        """Name run and revision in an error."""
        try:
            yield
        except CoevoError as error:
            run = self._repository.root.parent.name
            raise CoevoError(f"run {run!r}, revision {revision}: {error}") from error
