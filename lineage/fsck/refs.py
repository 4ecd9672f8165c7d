"""The branch and the tags of a run: one line of commits, a tag for each, and none elsewhere.

refs/tags/r<N>      revision N is kept whole
refs/dropped/r<N>   revision N was dropped: its commit and manifest stay, artifacts and table versions may be gone
refs/tags/<name>    a name that a user gave a revision
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from lineage.findings import BACKUP, Finding, lost, mendable
from lineage.repository import Repository
from lineage.tags import TARGET

REVISION_REF = re.compile(r"refs/(tags|dropped)/r(\d+) (\w+)")


def check_branch(repository: Repository, run: str) -> Iterator[Finding]:
    """HEAD is on ``main``, which no tag is ahead of, and nothing was merged into it."""
    git = repository.git
    if git.attempt("symbolic-ref", "HEAD").stdout.strip() != b"refs/heads/main":
        yield mendable(run, "HEAD is not on the branch main", "puts it back there")
    # The branch is read last: a writer may commit in between.
    told, held = len(full_line(repository)), len(repository.commits())
    if told > held:
        problem = f"the branch main has {held} revisions but the tags go up to r{told - 1}"
        yield mendable(run, problem, "moves it forward")
    if git("rev-list", "--min-parents=2", "--branches=[m]ain"):
        yield lost(run, "the history has merges, so commits cannot be counted as revisions")


def check_tags(repository: Repository, run: str) -> Iterator[Finding]:
    """Every revision has its tag, or the mark that it was dropped, and nothing else has one."""
    commits, held = repository.commits(), defaultdict[int, dict[str, str]](dict)
    for kind, number, commit in revision_refs(repository):
        held[number][kind] = commit
    for number, commit in enumerate(commits):
        yield from _check_revision(held[number], number, commit, f"{run}@{number}")
    yield from _check_strays(repository, run)


def full_line(repository: Repository) -> list[str]:
    """The history of the branch, or the one that tags say it went on to; of these, those of revisions come first."""
    line, refs = repository.commits(), revision_refs(repository)
    ahead = sorted(((number, kind, commit) for kind, number, commit in refs if number >= len(line)), reverse=True)
    numbered = ((number, _history(repository, commit)) for number, _, commit in ahead)
    line = next((found for n, found in numbered if len(found) == n + 1 and found[: len(line)] == line), line)
    named = [_history(repository, commit) for commit in set(repository.tags.named().values()).difference(line)]
    return max((found for found in named if found[: len(line)] == line), key=len, default=line)


def revision_refs(repository: Repository) -> list[tuple[str, int, str]]:
    """(``tags`` or ``dropped``, revision, commit) of every ref that is named after a revision."""
    listed = repository.git("for-each-ref", f"--format=%(refname) {TARGET}", "refs/tags", "refs/dropped")
    found = (REVISION_REF.fullmatch(line) for line in listed.splitlines())
    return [(ref[1], int(ref[2]), ref[3]) for ref in found if ref]


def dropped(repository: Repository) -> set[int]:
    """Revisions that are not kept whole any more."""
    return {number for kind, number, _ in revision_refs(repository) if kind == "dropped"}


def _check_revision(held: Mapping[str, str], number: int, commit: str, subject: str) -> Iterator[Finding]:
    if not held:
        yield mendable(subject, f"the tag r{number} is missing", "makes it again")
    elif len(held) == 2:
        yield mendable(subject, f"it was dropped, and still has the tag r{number}", "removes the tag")
    elif held.get("tags", commit) != commit:
        yield mendable(subject, f"the tag r{number} is on another commit", "puts it back")
    if held.get("dropped", commit) != commit:
        yield mendable(subject, f"it was dropped, but refs/dropped/r{number} is on another commit", "puts it back")


def _check_strays(repository: Repository, run: str) -> Iterator[Finding]:
    line, held = full_line(repository), len(repository.commits())
    for kind, number, commit in revision_refs(repository):
        if number >= held and line[number : number + 1] != [commit]:
            name = f"tag r{number}" if kind == "tags" else f"mark refs/dropped/r{number}"
            remedy = f"git -C {repository.root} update-ref -d refs/{kind}/r{number}"
            yield lost(run, f"the {name} is not on this history", f"if nothing else is amiss, remove it: `{remedy}`")
    for name, commit in repository.tags.named().items():
        if commit not in line:
            remedy = f"{BACKUP}; or give it up: `coevo tag {run} {name} --delete`"
            yield lost(run, f"the tag {name} is on a commit that is no revision of this history", remedy)


def _history(repository: Repository, commit: str) -> list[str]:
    return repository.git.attempt("rev-list", "--reverse", commit).stdout.decode().split()
