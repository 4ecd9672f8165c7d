"""Empty references after a power cut: git treats them as damage and does not overwrite them.

Other references to the history show the commit that each one had.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.line import revision_refs
from coevo.lineage.repository import Repository

MAIN = "refs/heads/main"
NUMBERED = re.compile(r"refs/(?:tags|dropped)/r(\d+)")


def check_empty_refs(repository: Repository, run: str) -> Iterator[Finding]:
    """Report empty references."""
    refs = _empty(repository)
    commits = _history(repository) if refs else []
    for ref in refs:
        what = f"the reference {ref} is empty"
        if _meant(ref, commits) is not None:
            yield mendable(run, what, "takes its commit from the other references")
        elif commits:
            yield lost(run, what, f"remove {_file(repository, ref)}: its commit is unknown")
        else:
            yield lost(run, what)


def mend_empty_refs(repository: Repository) -> None:
    """Rewrite empty references whose commit is known."""
    refs = _empty(repository)
    commits = _history(repository) if refs else []
    for ref in refs:
        commit = _meant(ref, commits)
        if commit is not None:
            write_atomically(_file(repository, ref), f"{commit}\n")


def _empty(repository: Repository) -> list[str]:
    folder = repository.root / ".git"
    files = (path for path in sorted((folder / "refs").rglob("[!.]*")) if path.is_file() and path.suffix != ".lock")
    return [path.relative_to(folder).as_posix() for path in files if not path.read_bytes().strip(b"\0\n")]


def _meant(ref: str, commits: Sequence[str]) -> str | None:
    numbered = NUMBERED.fullmatch(ref)
    number = int(numbered[1]) if numbered else len(commits) - 1
    return commits[number] if (numbered or ref == MAIN) and 0 <= number < len(commits) else None


def _history(repository: Repository) -> list[str]:
    """Commits by revision number: those of ``main``, or of the highest revision with a readable reference."""
    tips = [(number, commit) for _, number, commit in revision_refs(repository)]
    for tip in (MAIN, *(commit for _, commit in sorted(tips, reverse=True))):
        found = repository.git.attempt("rev-list", "--reverse", tip).stdout.decode().split()
        if found:
            return found
    return []


def _file(repository: Repository, ref: str) -> Path:
    return repository.root / ".git" / ref
