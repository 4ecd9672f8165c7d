"""A run's history in a git bundle, and beside it the record of what else was pushed.

refs/heads/main          the revisions
refs/tags/r<N>           revision N is kept whole;  refs/dropped/r<N>: only its commit is
refs/tags/<name>         names that people gave
refs/coevo/run           the record, a blob
"""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from configs.errors import CoevoError
from configs.load import validate
from lineage.blobs import BATCH, read_objects
from lineage.git import Git
from lineage.manifest import Manifest
from lineage.pointer import Pointer
from lineage.remote.header import MAIN, RECORD, REVISION, Header
from lineage.remote.vet import check_history, check_objects
from lineage.repository import manifests_in
from lineage.schema import LIMIT
from lineage.tags import TARGET


class Record(BaseModel):
    """What a run consists of beside its revisions.

    Attributes:
        created: when, as the run's file says.
        config: the configuration that it goes on with.
        bank: content hash of the list of the bank's files.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    created: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}\n?$")]
    config: dict[str, Any]
    bank: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}\.dir$")]

    def text(self) -> str:
        """The record as a bundle holds it."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of ``text``.

        Raises:
            CoevoError: it is not as coevo writes it, or its configuration is none.
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
    """A history in a bare repository of its own, made of a bundle or for one."""

    def __init__(self, root: Path, foreign: bool = False) -> None:
        """An empty one at ``root``, which must not be there.

        Args:
            root: its directory.
            foreign: whether somebody else decides what gets in.
        """
        root.mkdir(parents=True)
        self.root = root
        self.git = Git(root, bounded=foreign)
        self.git.init()

    def load(self, content: bytes, source: str, own: Mapping[str, str]) -> None:
        """Read a bundle and check all of it.

        Args:
            content: its bytes.
            source: what it is called in messages.
            own: text by path of what coevo sets up in this lineage.

        Raises:
            CoevoError: it is damaged, or holds what coevo never writes.
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
        """See that history and record are as coevo writes them, so that a pull may use them.

        Raises:
            CoevoError: they are not; names what and where.
        """
        self.pointers: Mapping[str, Pointer] = check_history(self.git, self.refs, own)
        self.record()

    def content(self) -> bytes:
        """The bundle of all that is here."""
        file = self.root / "lineage.bundle"
        self.git("bundle", "create", "--quiet", str(file), "--all")
        return file.read_bytes()

    @cached_property
    def refs(self) -> dict[str, str]:
        """Every ref and what it points to."""
        return refs_of(self.git)

    @cached_property
    def commits(self) -> list[str]:
        """Commit of every revision, by number."""
        return self.git("rev-list", "--reverse", MAIN).split()

    def whole(self) -> Iterator[Manifest]:
        """Manifests of the revisions that are kept whole, a few of them in memory at a time."""
        dropped = dropped_in(self.refs)
        kept = [commit for n, commit in enumerate(self.commits) if n not in dropped]
        for start in range(0, len(kept), BATCH):
            yield from manifests_in(self.git, kept[start : start + BATCH])

    def record(self) -> Record:
        """What was pushed with it.

        Raises:
            CoevoError: it is not as coevo writes it.
        """
        (content,) = read_objects(self.git, [RECORD], "blob", LIMIT)
        return Record.parse(content.decode(errors="replace"))


def compose(root: Path, lineage: Git, theirs: Bundle | None) -> Bundle:
    """The history that a push leaves at the remote, all but the record: ours, and names that were only given there.

    It is taken at one moment, and borrows the objects of ``lineage``, so a writer may go on meanwhile.
    """
    made = Bundle(root)
    borrowed = [lineage.root / ".git" / "objects"] + ([theirs.root / ".git" / "objects"] if theirs else [])
    alternates = root / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text("".join(f"{path}\n" for path in borrowed), encoding="utf-8")
    refs = refs_of(lineage)
    set_refs(made.git, {MAIN: refs[MAIN]})
    dropped = dropped_in(refs)
    numbers = {f"refs/{'dropped' if n in dropped else 'tags'}/r{n}": commit for n, commit in enumerate(made.commits)}
    set_refs(made.git, {**(names_in(theirs.refs) if theirs else {}), **names_in(refs), **numbers})
    return made


def enter(bundle: Bundle, record: Record) -> None:
    """Put the record in."""
    blob = bundle.git("hash-object", "-w", "--stdin", stdin=record.text()).strip()
    set_refs(bundle.git, {RECORD: blob})
    bundle.__dict__.pop("refs", None)


def refs_of(git: Git) -> dict[str, str]:
    """Every ref of a repository and what it points to; of a tag with a message, the commit that it is on."""
    lines = git("for-each-ref", f"--format=%(refname) {TARGET}").splitlines()
    return dict(line.split(" ") for line in lines)


def set_refs(git: Git, refs: Mapping[str, str]) -> None:
    """Set all of them, or none."""
    git("update-ref", "--stdin", stdin="".join(f"update {name} {value}\n" for name, value in refs.items()))


def names_in(refs: Mapping[str, str]) -> dict[str, str]:
    """The tags that people gave."""
    return {name: to for name, to in refs.items() if name.startswith("refs/tags/") and not REVISION.fullmatch(name)}


def dropped_in(refs: Mapping[str, str]) -> set[int]:
    """Numbers of the revisions of which only the commit is kept."""
    found = (REVISION.fullmatch(name) for name in refs)
    return {int(match[2]) for match in found if match and match[1] == "dropped"}
