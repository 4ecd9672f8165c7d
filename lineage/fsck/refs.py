"""The branch and the tags of a run: one line of commits, one tag per commit, and no others.

refs/tags/r<N>      revision N is kept whole
refs/dropped/r<N>   revision N was dropped: its commit and manifest stay, artifacts and table versions may be gone
refs/tags/<name>    a name that a user gave a revision
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.findings import BACKUP, Finding, lost, mendable
from coevo.lineage.fsck.line import Line, read_line, revision_refs
from coevo.lineage.fsck.places import check_created
from coevo.lineage.repository import Repository
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.utilities.errors import CoevoError

MAIN = "refs/heads/main"
NUMBERED = re.compile(r"refs/(?:tags|dropped)/r(\d+)")


def check_branch(repository: Repository, line: Line, run: str) -> Iterator[Finding]:
    """Check that HEAD is on ``main``, that no tag is ahead of ``main``, and that it has no merges."""
    git, told, held = repository.git, len(line.full), len(line.commits)
    if git.attempt("symbolic-ref", "HEAD").stdout.strip() != b"refs/heads/main":
        yield mendable(run, "HEAD is not on the branch main", "moves it back")
    if told > held:
        problem = f"the branch main has {held} revisions but the tags go up to r{told - 1}"
        yield mendable(run, problem, "moves it forward")
    if git("rev-list", "--min-parents=2", "--branches=[m]ain"):
        yield lost(run, "the history has merges, so commits cannot be counted as revisions")


def check_tags(repository: Repository, line: Line, run: str) -> Iterator[Finding]:
    """Check that every revision has its tag, or the mark that it was dropped, and nothing else has one."""
    held = defaultdict[int, dict[str, str]](dict)
    for kind, number, commit in line.refs:
        held[number][kind] = commit
    for number, commit in enumerate(line.commits):
        yield from _check_revision(held[number], number, commit, f"{run}@{number}")
    yield from _check_strays(repository, line, run)


def _check_revision(held: Mapping[str, str], number: int, commit: str, subject: str) -> Iterator[Finding]:
    if not held:
        yield mendable(subject, f"the tag r{number} is missing", "creates it")
    elif len(held) == 2:
        yield mendable(subject, f"it was dropped, and still has the tag r{number}", "removes the tag")
    elif held.get("tags", commit) != commit:
        yield mendable(subject, f"the tag r{number} is on another commit", "moves it back")
    if held.get("dropped", commit) != commit:
        yield mendable(subject, f"it was dropped, but refs/dropped/r{number} is on another commit", "moves it back")


def _check_strays(repository: Repository, line: Line, run: str) -> Iterator[Finding]:
    for kind, number, commit in line.refs:
        if number >= len(line.commits) and line.full[number : number + 1] != [commit]:
            name = f"tag r{number}" if kind == "tags" else f"mark refs/dropped/r{number}"
            remedy = f"git -C {repository.root} update-ref -d refs/{kind}/r{number}"
            yield lost(run, f"the {name} is not on this history", f"if nothing else is amiss, remove it: `{remedy}`")
    for name, commit in line.named.items():
        if commit not in line.full:
            remedy = f"{BACKUP}; or give it up: `coevo tag {run} {name} --delete`"
            yield lost(run, f"the tag {name} is on a commit that is not a revision of this history", remedy)


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


def require_collectable(workspace: Workspace, runs: Iterable[RunPaths]) -> None:
    """Check that these run directories define what they keep, while no writer changes it.

    Raises:
        CoevoError: fsck finds a fault in a run's file ``created``, branch or tags; names the remedy.
    """
    for paths in runs:
        for finding in check_keeping(workspace, paths):
            raise CoevoError(f"{finding.subject}: {finding.problem}: {finding.remedy}; nothing was removed")


def check_keeping(workspace: Workspace, paths: RunPaths) -> Iterator[Finding]:
    """Report faults that hide a run or shorten its history."""
    yield from check_created(paths)
    if paths.lineage.exists():
        repository = Repository(paths.lineage, workspace.cache)
        yield from check_empty_refs(repository, paths.name)
        line = read_line(repository)
        yield from check_branch(repository, line, paths.name)
        yield from check_tags(repository, line, paths.name)
