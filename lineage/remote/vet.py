"""Checks of a foreign history as git objects, in a scratch repository, before any of it is used.

Every commit is checked: a remote that others write to could hide a file in an old revision that a rollback checks out.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from coevo.configs.load.load import validate
from coevo.lineage.git import Git
from coevo.lineage.objects.pointer import Pointer
from coevo.lineage.remote.header import MAIN, RECORD, REVISION, checked
from coevo.lineage.revision import manifest_schema
from coevo.lineage.revision.commit_tree import LIMIT as TREE_LIMIT
from coevo.lineage.revision.commit_tree import read_revisions
from coevo.lineage.revision.manifest import Manifest
from coevo.utilities.errors import CoevoError

LIMITS = {"commit": 1 << 14, "tree": TREE_LIMIT, "blob": manifest_schema.LIMIT}
"""Maximum bytes of an object by kind; other kinds are refused, since coevo writes no annotated tags."""
TOTAL = 1 << 29
"""Maximum bytes of all objects, unpacked: a bundle of some kB may hold terabytes of manifests that differ little."""


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
