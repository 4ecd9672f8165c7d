"""The git history of a run: sound objects, one line of commits, a manifest and a tag for each.

refs/tags/r<N>      revision N is kept whole
refs/dropped/r<N>   revision N was dropped: its commit and manifest stay, artifacts and table versions may be gone
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

from lineage.findings import Finding, lost, mendable
from lineage.manifest import Manifest
from lineage.repository import MANIFEST, Repository

OBJECT = re.compile(r"\b[0-9a-f]{40}\b")
REVISION_REF = re.compile(r"refs/(tags|dropped)/r(\d+) (\w+)")
FIELDS = ("iteration", "restored_from", "config", "config_hash", "code", "artifacts", "tables", "metrics")


@dataclass(frozen=True)
class Revision:
    """A commit of the history with its manifest."""

    number: int
    commit: str
    manifest: Manifest


def damaged_objects(repository: Repository) -> list[str]:
    """Hashes of git objects that are missing or corrupt; a sentence of git's where it names none."""
    done = repository.git.attempt("fsck", "--full", "--no-dangling", "--no-progress")
    said = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    lines = [line for line in said if line.startswith(("error", "fatal", "missing"))]
    named = {found[0] for line in lines if (found := OBJECT.search(line))}
    return sorted(named) or (lines[:1] if done.returncode else [])


def check_branch(repository: Repository, run: str) -> Iterator[Finding]:
    """HEAD is on ``main``, which no tag is ahead of, and nothing was merged into it."""
    git = repository.git
    if git.attempt("symbolic-ref", "HEAD").stdout.strip() != b"refs/heads/main":
        yield mendable(run, "HEAD is not on the branch main", "puts it back there")
    ahead = tip_beyond(repository)
    if ahead is not None:
        held = len(repository.commits())
        yield mendable(run, f"the branch main has {held} revisions but the tags go up to r{ahead}", "moves it forward")
    if git("rev-list", "--min-parents=2", "--branches=[m]ain"):
        yield lost(run, "the history has merges, so commits cannot be counted as revisions")


def tip_beyond(repository: Repository) -> int | None:
    """The highest revision whose tag is ahead of the branch, in a history that contains the branch's."""
    commits = repository.commits()
    beyond = {number: commit for _, number, commit in revision_refs(repository) if number >= len(commits)}
    for number, commit in sorted(beyond.items(), reverse=True):
        line = repository.git.attempt("rev-list", "--reverse", commit).stdout.decode().split()
        if len(line) == number + 1 and line[: len(commits)] == commits:
            return number
    return None


def revision_refs(repository: Repository) -> list[tuple[str, int, str]]:
    """(``tags`` or ``dropped``, revision, commit) of every ref that is named after a revision."""
    listed = repository.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/tags", "refs/dropped")
    found = (REVISION_REF.fullmatch(line) for line in listed.splitlines())
    return [(ref[1], int(ref[2]), ref[3]) for ref in found if ref]


def dropped(repository: Repository) -> set[int]:
    """Revisions that are not kept whole any more."""
    return {number for kind, number, _ in revision_refs(repository) if kind == "dropped"}


def read_history(repository: Repository, run: str) -> tuple[list[Revision], list[Finding]]:
    """The revisions whose manifests can be read, and a finding for each that cannot."""
    commits = repository.commits()
    revisions, findings = [], []
    for number, (commit, text) in enumerate(zip(commits, _blobs(repository, commits, MANIFEST), strict=True)):
        try:
            manifest = Manifest.parse(text.decode())
            absent = [name for name in FIELDS if name not in manifest.state]
            if absent:
                raise ValueError(f"state.{absent[0]} is absent")
        except (ValueError, KeyError, TypeError) as error:
            findings.append(lost(f"{run}@{number}", f"its manifest cannot be read: {error}"))
        else:
            revisions.append(Revision(number, commit, manifest))
    return revisions, findings


def check_manifests(repository: Repository, revisions: Sequence[Revision], run: str) -> Iterator[Finding]:
    """Numbers fit the position, and the committed ``.dvc`` files name the manifest's artifacts."""
    for revision in revisions:
        number, manifest = revision.number, revision.manifest
        said = (manifest.state.get("revision"), manifest.state.get("parent"))
        if said != (number, number - 1 if number else None):
            yield lost(f"{run}@{number}", f"its manifest says revision {said[0]} with parent {said[1]}")
        if manifest.restored_from is not None and not 0 <= manifest.restored_from < number:
            yield lost(f"{run}@{number}", f"its manifest says it was restored from revision {manifest.restored_from}")
    names = sorted({name for revision in revisions for name in revision.manifest.artifacts})
    for name in names:
        holders = [revision for revision in revisions if name in revision.manifest.artifacts]
        pointers = _blobs(repository, [revision.commit for revision in holders], f"{name}.dvc")
        for revision, pointer in zip(holders, pointers, strict=True):
            if f"md5: {revision.manifest.artifacts[name]}\n" not in pointer.decode(errors="replace"):
                yield lost(f"{run}@{revision.number}", f"{name}.dvc does not name the {name} of its manifest")


def check_tags(repository: Repository, run: str) -> Iterator[Finding]:
    """Every revision has its tag, or the mark that it was dropped, and no other has one."""
    commits, refs = repository.commits(), revision_refs(repository)
    for number, commit in enumerate(commits):
        held = {kind: target for kind, other, target in refs if other == number}
        if not held:
            yield mendable(f"{run}@{number}", f"the tag r{number} is missing", "makes it again")
        elif len(held) == 2:
            yield mendable(f"{run}@{number}", f"it was dropped, and still has the tag r{number}", "removes the tag")
        elif commit not in held.values():
            yield mendable(f"{run}@{number}", f"the tag r{number} is on another commit", "puts it back")
    beyond = sorted({number for _, number, _ in refs if number >= len(commits)})
    if beyond and tip_beyond(repository) is None:
        yield lost(run, f"the tag r{beyond[0]} is not on this history", "remove the tag if nothing else is amiss")


def _blobs(repository: Repository, commits: Sequence[str], path: str) -> list[bytes]:
    """Content of a file in each of these commits, empty where it is not there."""
    wanted = "".join(f"{commit}:{path}\n" for commit in commits)
    found = BytesIO(repository.git.attempt("cat-file", "--batch=%(objecttype) %(objectsize)", stdin=wanted).stdout)
    contents = []
    for header in iter(found.readline, b""):
        kind, size = header.rsplit(maxsplit=1)
        contents.append(found.read(int(size) + 1)[:-1] if kind == b"blob" else b"")
    return contents + [b""] * (len(commits) - len(contents))
