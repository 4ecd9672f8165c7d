"""The git history of a run: sound objects, and a manifest for each commit."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

from coevo.lineage.findings import Finding, lost
from coevo.lineage.repository import Repository
from coevo.lineage.revision import manifest_schema
from coevo.lineage.revision.commit_tree import MANIFEST
from coevo.lineage.revision.manifest import Manifest
from coevo.utilities.errors import CoevoError

OBJECT = re.compile(r"\b[0-9a-f]{40}\b")


@dataclass(frozen=True)
class Revision:
    """A commit of the history with its manifest."""

    number: int
    commit: str
    manifest: Manifest


def damaged_objects(repository: Repository) -> list[str]:
    """Hashes of git objects that are missing or corrupt; a line of git's output if it names none."""
    done = repository.git.attempt("fsck", "--full", "--no-dangling", "--no-progress")
    said = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    lines = [line for line in said if line.startswith(("error", "fatal", "missing"))]
    named = {found[0] for line in lines if (found := OBJECT.search(line))}
    return sorted(named) or (lines[:1] if done.returncode else [])


def read_history(repository: Repository, commits: Sequence[str], run: str) -> tuple[list[Revision], list[Finding]]:
    """Read the revisions whose manifests are readable, with a finding for each other one.

    If all are readable, trees and ``.dvc`` files are checked as well.
    """
    revisions, findings = [], []
    for number, (commit, text) in enumerate(zip(commits, _blobs(repository, commits, MANIFEST), strict=True)):
        try:
            manifest = Manifest.exactly(text)
            manifest_schema.check(manifest)
        except CoevoError as error:
            findings.append(lost(f"{run}@{number}", f"its manifest cannot be read: {error}"))
        else:
            revisions.append(Revision(number, commit, manifest))
    return revisions, findings or list(_trees(repository, commits, run))


def _trees(repository: Repository, commits: Sequence[str], run: str) -> Iterator[Finding]:
    """Report a commit with content that no revision has, which a repair would make git and DVC check out."""
    try:
        repository.vet(commits)
    except CoevoError as error:
        yield lost(run, str(error))


def check_manifests(repository: Repository, revisions: Sequence[Revision], run: str) -> Iterator[Finding]:
    """Report manifests whose numbers do not fit their position."""
    for revision in revisions:
        number, manifest = revision.number, revision.manifest
        said = (manifest.state.get("revision"), manifest.state.get("parent"))
        if said != (number, number - 1 if number else None):
            yield lost(f"{run}@{number}", f"its manifest says revision {said[0]} with parent {said[1]}")
        if manifest.restored_from is not None and not 0 <= manifest.restored_from < number:
            yield lost(f"{run}@{number}", f"its manifest says it was restored from revision {manifest.restored_from}")


def _blobs(repository: Repository, commits: Sequence[str], path: str) -> list[bytes]:
    """Content of a file in each of these commits, empty if the commit lacks it."""
    wanted = "".join(f"{commit}:{path}\n" for commit in commits)
    found = BytesIO(repository.git.attempt("cat-file", "--batch=%(objecttype) %(objectsize)", stdin=wanted).stdout)
    contents = []
    for header in iter(found.readline, b""):
        kind, size = header.rsplit(maxsplit=1)
        contents.append(found.read(int(size) + 1)[:-1] if kind == b"blob" else b"")
    return contents + [b""] * (len(commits) - len(contents))
