"""A run's history in a git bundle, and beside it the record of what else was pushed.

refs/heads/main          the revisions
refs/tags/r<N>           revision N is kept whole;  refs/dropped/r<N>: only its commit is
refs/tags/<name>         names that people gave
refs/coevo/run           the record, a blob
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from configs.errors import CoevoError
from lineage.git import Git
from lineage.manifest import Manifest
from lineage.repository import manifests_in

MAIN = "refs/heads/main"
RECORD = "refs/coevo/run"
REVISION = re.compile(r"refs/(tags|dropped)/r(\d+)")


@dataclass(frozen=True)
class Record:
    """What a run consists of beside its revisions.

    Attributes:
        created: when, as the run's file says.
        config: the configuration that it goes on with.
        bank: content hash of the list of the bank's files.
    """

    created: str
    config: Mapping[str, Any]
    bank: str


class Bundle:
    """A history in a bare repository of its own, made of a bundle or for one."""

    def __init__(self, root: Path) -> None:
        """An empty one at ``root``, which must not be there."""
        root.mkdir(parents=True)
        self.root = root
        self.git = Git(root)
        self.git.init()

    def load(self, content: bytes, source: str) -> None:
        """Read a bundle.

        Raises:
            CoevoError: it is damaged.
        """
        file = self.root / "lineage.bundle"
        file.write_bytes(content)
        try:
            self.git("fetch", "--quiet", "--update-head-ok", str(file), "+refs/*:refs/*")
            self.record()
        except (CoevoError, ValueError, TypeError) as error:
            raise CoevoError(
                f"{source} is damaged: remove it there, and push again from a machine that has it"
            ) from error

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

    def whole(self) -> list[Manifest]:
        """Manifests of the revisions that are kept whole."""
        dropped = dropped_in(self.refs)
        return manifests_in(self.git, [commit for n, commit in enumerate(self.commits) if n not in dropped])

    def record(self) -> Record:
        """What was pushed with it."""
        return Record(**json.loads(self.git("cat-file", "blob", RECORD)))


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
    blob = bundle.git("hash-object", "-w", "--stdin", stdin=json.dumps(asdict(record), sort_keys=True)).strip()
    set_refs(bundle.git, {RECORD: blob})
    bundle.__dict__.pop("refs", None)


def refs_of(git: Git) -> dict[str, str]:
    """Every ref of a repository and what it points to."""
    lines = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
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
