"""A run's history in a git bundle, with a record of everything else that was pushed.

refs/heads/main          the revisions
refs/tags/r<N>           revision N is kept whole;  refs/dropped/r<N>: only its commit is kept
refs/tags/<name>         names that users gave
refs/coevo/run           the record, a blob
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from coevo.configs.load.load import validate
from coevo.lineage.blobs import BATCH, read_objects
from coevo.lineage.git import Git
from coevo.lineage.objects.pointer import Pointer
from coevo.lineage.remote.header import MAIN, RECORD, REVISION, Header, checked
from coevo.lineage.repository import manifests_in
from coevo.lineage.revision import manifest_schema
from coevo.lineage.revision.commit_tree import LIMIT as TREE_LIMIT
from coevo.lineage.revision.commit_tree import read_revisions
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.manifest_schema import LIMIT
from coevo.lineage.revision.tags import TARGET
from coevo.utilities.errors import CoevoError

LIMITS = {"commit": 1 << 14, "tree": TREE_LIMIT, "blob": manifest_schema.LIMIT}
"""Maximum bytes of an object by kind; other kinds are refused, since coevo writes no annotated tags."""
TOTAL = 1 << 29
"""Maximum bytes of all objects, unpacked: a bundle of some kB may hold terabytes of manifests that differ little."""


class Record(BaseModel):
    """Data of a run other than its revisions.

    Attributes:
        created: creation time, as in the run's file.
        config: the configuration for the run's next session.
        bank: content hash of the list of the bank's files.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    created: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}\n?$")]
    config: dict[str, Any]
    bank: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}\.dir$")]

    def text(self) -> str:
        """Text of the record in a bundle."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Inverse of ``text``.

        Raises:
            CoevoError: it is not in coevo's format, or its configuration is invalid.
        """
        try:
            found = cls.model_validate(json.loads(text))
            same = found.text() == text
        except (ValidationError, ValueError, RecursionError) as error:
            raise CoevoError(f"its record is not as coevo writes it ({type(error).__name__})") from None
        if not same:
            raise CoevoError("its record is not as coevo writes it")
        validate(dict(found.config), source="the configuration of its record")
        return found


class Bundle:
    """A history in its own bare repository, read from a bundle or prepared for one."""

    def __init__(self, root: Path, foreign: bool = False) -> None:
        """Create an empty one at ``root``, which must not exist.

        Args:
            root: its directory.
            foreign: True if the content comes from elsewhere.
        """
        root.mkdir(parents=True)
        self.root = root
        self.git = Git(root, bounded=foreign)
        self.git.init()

    def load(self, content: bytes, source: str, own: Mapping[str, str]) -> None:
        """Read a bundle and check all of it.

        Args:
            content: its bytes.
            source: its name in messages.
            own: text by path of the files that coevo creates in this lineage.

        Raises:
            CoevoError: it is damaged, or has content that coevo never writes.
        """
        try:
            header = Header.parse(content)
            file = self.root / "lineage.bundle"
            file.write_bytes(content)
            self.git("fetch", "--quiet", "--no-tags", "--update-head-ok", str(file), "+refs/*:refs/*")
            check_objects(self.git)
            if self.refs != {name: to for name, to in header.refs.items() if name != "HEAD"}:
                raise CoevoError("it has other references than it says")
            self.vet(own)
        except CoevoError as error:
            reason = "".join(char if char.isprintable() else "?" for char in str(error))[:400]
            raise CoevoError(
                f"{source} is refused: {reason}: remove it there, and push again from a machine that has it"
            ) from error

    def vet(self, own: Mapping[str, str]) -> None:
        """Check that history and record are in coevo's format, so that a pull can use them.

        Raises:
            CoevoError: they are not; names the fault and its place.
        """
        self.pointers: Mapping[str, Pointer] = check_history(self.git, self.refs, own)
        self.record()

    def content(self) -> bytes:
        """Bundle of all content of this repository."""
        file = self.root / "lineage.bundle"
        self.git("bundle", "create", "--quiet", str(file), "--all")
        return file.read_bytes()

    @cached_property
    def refs(self) -> dict[str, str]:
        """Every ref and its target."""
        return refs_of(self.git)

    @cached_property
    def commits(self) -> list[str]:
        """Commit of every revision, by number."""
        return self.git("rev-list", "--reverse", MAIN).split()

    def whole(self) -> Iterator[Manifest]:
        """Manifests of the revisions that are kept whole, a few in memory at a time."""
        dropped = dropped_in(self.refs)
        kept = [commit for n, commit in enumerate(self.commits) if n not in dropped]
        for start in range(0, len(kept), BATCH):
            yield from manifests_in(self.git, kept[start : start + BATCH])

    def contents(self) -> set[str]:
        """Content hashes of the artifacts that these revisions keep."""
        last = len(self.commits) - 1
        return {content for manifest in self.whole() for content in manifest.kept(last).values()}

    def record(self) -> Record:
        """Record that was pushed with it.

        Raises:
            CoevoError: it is not in coevo's format.
        """
        (content,) = read_objects(self.git, [RECORD], "blob", LIMIT)
        return Record.parse(content.decode(errors="replace"))


def compose(root: Path, lineage: Git, theirs: Bundle | None) -> Bundle:
    """History that a push leaves at the remote, without the record: ours, and names that exist only there.

    It is taken at one moment, and borrows the objects of ``lineage``, so a writer may continue meanwhile.
    """
    made = Bundle(root)
    _borrow(root, [lineage.root, *([theirs.root] if theirs else [])])
    refs = refs_of(lineage)
    set_refs(made.git, {MAIN: refs[MAIN]})
    dropped = dropped_in(refs)
    numbers = {f"refs/{'dropped' if n in dropped else 'tags'}/r{n}": commit for n, commit in enumerate(made.commits)}
    set_refs(made.git, {**(names_in(theirs.refs) if theirs else {}), **names_in(refs), **numbers})
    return made


def _borrow(root: Path, others: Iterable[Path]) -> None:
    """Let a repository read the objects of others without a copy."""
    alternates = root / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text("".join(f"{other / '.git' / 'objects'}\n" for other in others), encoding="utf-8")


def enter(bundle: Bundle, record: Record) -> None:
    """Add the record."""
    blob = bundle.git("hash-object", "-w", "--stdin", stdin=record.text()).strip()
    set_refs(bundle.git, {RECORD: blob})
    bundle.__dict__.pop("refs", None)


def refs_of(git: Git) -> dict[str, str]:
    """Every ref of a repository and its target; for a tag with a message, its commit."""
    lines = git("for-each-ref", f"--format=%(refname) {TARGET}").splitlines()
    return dict(line.split(" ") for line in lines)


def set_refs(git: Git, refs: Mapping[str, str]) -> None:
    """Set all refs, or none."""
    git("update-ref", "--stdin", stdin="".join(f"update {name} {value}\n" for name, value in refs.items()))


def names_in(refs: Mapping[str, str]) -> dict[str, str]:
    """Tags that users gave."""
    return {name: to for name, to in refs.items() if name.startswith("refs/tags/") and not REVISION.fullmatch(name)}


def dropped_in(refs: Mapping[str, str]) -> set[int]:
    """Numbers of the revisions of which only the commit is kept."""
    found = (REVISION.fullmatch(name) for name in refs)
    return {int(match[2]) for match in found if match and match[1] == "dropped"}


def check_objects(git: Git) -> None:
    """Check that no object, reachable or not, is larger than any that coevo writes, and bound their total size.

    Raises:
        CoevoError: one is larger or of another kind, or the total is too large.
    """
    found = _objects(git)
    for kind, size in set(found):
        if kind not in LIMITS:
            raise CoevoError(f"it holds an object of the kind {kind}")
        if size > LIMITS[kind]:
            raise CoevoError(f"it holds a {kind} of {size} bytes; none that coevo writes has over {LIMITS[kind]}")
    total = sum(size for _, size in found)
    if total > TOTAL:
        raise CoevoError(f"its objects have {total} bytes together; at most {TOTAL} are read")


def _objects(git: Git) -> list[tuple[str, int]]:
    """Kind and bytes of each object."""
    listed = git("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectsize)")
    return [(kind, int(size)) for kind, _, size in (line.partition(" ") for line in listed.splitlines())]


def check_history(git: Git, refs: Mapping[str, str], own: Mapping[str, str]) -> dict[str, Pointer]:
    """Check that every revision, tag and mark of a history is in coevo's format.

    Args:
        git: the repository.
        refs: every reference there.
        own: text by path of the files that coevo creates in this lineage.

    Returns:
        the content of the ``.dvc`` files of all artifacts, by content hash.

    Raises:
        CoevoError: anything differs; names the fault and its place.
    """
    commits = _line(git)
    _check_refs(checked(refs), commits)
    found: dict[str, Pointer] = {}
    configs = set[str]()
    for number, (manifest, pointers) in enumerate(read_revisions(git, commits, own)):
        try:
            _check_revision(manifest, number, configs)
            for pointer in pointers:
                _note(pointer, found)
        except CoevoError as error:
            raise CoevoError(f"revision {number}: {error}") from error
    return found


def _line(git: Git) -> list[str]:
    """Commits by revision number.

    Raises:
        CoevoError: a commit does not have the previous one as its only parent.
    """
    rows = [row.split() for row in git("rev-list", "--reverse", "--topo-order", "--parents", MAIN).splitlines()]
    before: list[str] = []
    for commit, *parents in rows:
        if parents != before:
            raise CoevoError(f"commit {commit} does not have the one before it as its only parent")
        before = [commit]
    return [commit for commit, *_ in rows]


def _check_refs(refs: Mapping[str, str], commits: Sequence[str]) -> None:
    known, numbers = set(commits), set[int]()
    for name, to in refs.items():
        if name != RECORD and to not in known:
            raise CoevoError(f"the reference {name} is on no revision")
        found = REVISION.fullmatch(name)
        if found:
            number = int(found[2])
            if number in numbers or commits[number : number + 1] != [to]:
                raise CoevoError(f"the reference {name} is on another commit than revision {number}, or there twice")
            numbers.add(number)
    if len(numbers) != len(commits):
        raise CoevoError("a revision is marked neither as kept nor as dropped")


def _check_revision(manifest: Manifest, number: int, configs: set[str]) -> None:
    manifest_schema.check(manifest)
    if (manifest.revision, manifest.parent) != (number, number - 1 if number else None):
        raise CoevoError(f"its manifest says revision {manifest.revision} with parent {manifest.parent}")
    if manifest.restored_from is not None and manifest.restored_from >= number:
        raise CoevoError(f"its manifest says it was restored from revision {manifest.restored_from}")
    config = sha256(json.dumps(manifest.state["config"], sort_keys=True).encode()).hexdigest()  # texts may be large
    if config not in configs:
        validate(manifest.state["config"], source="its configuration")
        configs.add(config)


def _note(pointer: Pointer, found: dict[str, Pointer]) -> None:
    other = found.setdefault(pointer.content, pointer)
    if (other.size, other.files) != (pointer.size, pointer.files):
        raise CoevoError(f"{pointer.name}.dvc gives the object {pointer.content} another size than an earlier one")
