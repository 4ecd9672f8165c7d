"""The repository of one run: git for small files, DVC for artifacts, one commit per revision.

<root>/manifest.json  <name>.dvc …   in git
<root>/<name>/ …                     artifacts, in DVC's cache

The history is linear, so the commit with N before it is revision N.
"""

from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path

from coevo.lineage.atomic_files import remove
from coevo.lineage.git import Git
from coevo.lineage.objects.artifacts import Artifacts
from coevo.lineage.revision.commit_tree import MANIFEST, read_revisions
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.tags import Tags
from coevo.utilities.errors import CoevoError

LAYOUT = (".git", ".gitignore", ".dvc")
MAIN = "refs/heads/main"
UNREADABLE = (ValueError, LookupError, TypeError, RecursionError)
"""Exceptions of an object that is missing, or no manifest."""
TRACKED = "/*\n!/.gitignore\n!/.dvc/\n!/*.dvc\n!/manifest.json\n"


class Repository:
    """Commits and finds revisions. A commit never changes."""

    def __init__(self, root: Path, cache: Path) -> None:
        """Open the repository at ``root``; create an empty one if none exists.

        Raises:
            CoevoError: ``root`` has other content, or git is missing.
        """
        self.root = root
        self.git = Git(root)
        self.tags = Tags(self.git)
        self.artifacts = Artifacts(root, cache)
        if not root.exists():
            _lay_out(root, cache)
        if not (root / ".git").is_dir() or not (root / ".dvc").is_dir():
            raise CoevoError(f"{root}: not a lineage, or a damaged one: restore it from a copy")

    def commits(self) -> list[str]:
        """Commit hash of every revision, by revision number."""
        # A pattern, since naming the branch itself is an error before its first commit.
        return self.git("rev-list", "--reverse", "--branches=[m]ain").split()

    def manifests(self, commits: Sequence[str]) -> list[Manifest]:
        """Manifests of these commits."""
        return manifests_in(self.git, commits)

    def following(self, commit: str) -> tuple[str, Manifest] | None:
        """Commit and manifest of the branch if its only parent is ``commit``, without a process of git; None if not."""
        from dulwich.object_store import tree_lookup_path
        from dulwich.objects import Blob, Commit
        from dulwich.refs import Ref
        from dulwich.repo import Repo

        try:
            with Repo(str(self.root)) as files:
                name = files.refs[Ref(MAIN.encode())]
                found = files[name]
                if not isinstance(found, Commit) or found.parents != [commit.encode()]:
                    return None
                manifest = files[tree_lookup_path(files.__getitem__, found.tree, MANIFEST.encode())[1]]
                return (name.decode(), Manifest.parse(manifest.data.decode())) if isinstance(manifest, Blob) else None
        except Exception:  # noqa: BLE001 - dulwich raises of many kinds; git reads it next, and says what is wrong
            return None

    def vet(self, commits: Sequence[str]) -> None:
        """Check that commits, oldest first, have only the content of revisions, before git and DVC use them.

        Raises:
            CoevoError: one does not; names the fault.
        """
        first = int(self.git("rev-list", "--count", commits[0])) - 1 if commits else 0
        try:
            for _ in read_revisions(self.git, commits, own_files(self.root, self.artifacts.cache), first):
                pass
        except CoevoError as error:
            raise CoevoError(f"{self.root}: {error}: it is not checked out; do not trust this run") from error

    def commit(self, manifest: Manifest) -> None:
        """Commit the work tree with its manifest, and tag it. The revision exists once git has moved the branch.

        Raises:
            CoevoError: git failed; says whether the revision exists.
        """
        self.git("add", "--all")
        try:
            self.git("commit", "--quiet", "--message", _message(manifest))
            self.tag(manifest.revision)
        except CoevoError as error:
            if len(self.commits()) <= manifest.revision:
                raise
            run = self.root.parent.name
            raise CoevoError(
                f"run {run!r}, revision {manifest.revision} is committed, but its commit did not end: {error}: "
                f"then `coevo resume {run}` completes it"
            ) from error

    def tag(self, revision: int) -> None:
        """Give the last revision its tag: it is kept whole."""
        self.git("update-ref", f"refs/tags/r{revision}", "HEAD")

    def reset(self) -> list[str]:
        """Reset tracked files to the last revision and remove strangers; return the names of what differed."""
        if not self.commits():
            if self.git("for-each-ref", "refs/tags", "refs/dropped"):
                raise CoevoError(f"{self.root}: the branch main is lost, its tags are not: run `coevo fsck --repair`")
            return self._empty()
        self.vet(["HEAD"])
        changed = self.git("status", "--porcelain", "--no-renames", "-z").split("\0")
        self.git("reset", "--quiet", "--hard", "HEAD")
        kept = [name.removesuffix(".dvc") for name in self.git("ls-files", "*.dvc").splitlines()]
        removed = self.git("clean", "-ffdx", *(f"--exclude=/{name}" for name in (".dvc", *kept))).splitlines()
        return sorted({line[3:] for line in changed if line} | {line.removeprefix("Removing ") for line in removed})

    def _empty(self) -> list[str]:
        (self.root / ".git" / "index").unlink(missing_ok=True)
        strangers = [path for path in self.root.iterdir() if path.name not in LAYOUT]
        for path in strangers:
            remove(path, self.root)
        return sorted(path.name for path in strangers)

    def check_out(self, commit: str, without: Collection[str] = ()) -> None:
        """Restore an earlier revision's files and artifacts, except ``without``, in the work tree; HEAD stays."""
        self.vet([commit])
        before = self.artifacts.names()
        self.git("read-tree", "--reset", "-u", commit)
        for name in before - self.artifacts.names():
            remove(self.root / name, self.root)
        self.artifacts.forget(without)
        self.artifacts.checkout()

    def retag(self) -> list[str]:
        """Give every kept revision its tag ``r<N>``; return the tags that were missing or wrong."""
        return self.tags.mend(self.commits())

    def follow(self, source: "Repository", commits: Sequence[str], without: Collection[str] = ()) -> None:
        """Copy these revisions of another run, oldest first, into this empty repository.

        The work tree gets the artifacts of the last one, except ``without``.
        """
        self.git.fetch(source.root, f"{commits[-1]}:{MAIN}", "--update-head-ok")
        self.tags.copy_from(source.tags, commits)
        self.vet(["HEAD"])
        self.git("reset", "--quiet", "--hard", "HEAD")
        self.artifacts.forget(without)
        self.artifacts.checkout()


def own_files(root: Path, cache: Path) -> dict[str, str]:
    """Fixed files of every revision of the lineage at ``root``: text by path."""
    return {".gitignore": TRACKED, **Artifacts(root, cache).own()}


def manifests_in(git: Git, commits: Sequence[str]) -> list[Manifest]:
    """Manifests of commits in any repository of revisions."""
    try:
        return [Manifest.parse(text) for text in _texts(git, [f"{commit}:{MANIFEST}" for commit in commits])]
    except UNREADABLE as error:
        raise CoevoError(f"{git.root}: a manifest cannot be read: {error}; see `coevo fsck`") from error


def _texts(git: Git, names: Sequence[str]) -> list[str]:
    """Texts of git's objects by their names.

    Raises:
        ValueError, LookupError: one is missing, or is no text.
    """
    said = git("cat-file", "--batch=%(objectname) %(objectsize)", stdin="".join(f"{name}\n" for name in names))
    found = BytesIO(said.encode())
    heads = (line.split() for line in iter(found.readline, b""))
    return [found.read(int(head[1]) + 1).decode() for head in heads]


def _lay_out(root: Path, cache: Path) -> None:
    fresh = root.with_name(f".{root.name}.new")
    remove(fresh, root.parent)
    fresh.mkdir(parents=True)
    (fresh / ".dvc").mkdir()
    for path, text in own_files(fresh, cache).items():
        (fresh / path).write_text(text, encoding="utf-8")
    Git(fresh).init()
    fresh.rename(root)


def _message(manifest: Manifest) -> str:
    source = "" if manifest.restored_from is None else f", restored from r{manifest.restored_from}"
    return f"r{manifest.revision}: iteration {manifest.iteration}{source}"
