"""Git objects of a history, read a few at a time and up to a size limit."""

import hashlib
from collections.abc import Iterator, Sequence
from io import BytesIO

from coevo.lineage.git import Git
from coevo.utilities.errors import CoevoError

BATCH = 16
"""Number of objects in memory at once."""


def read_objects(git: Git, names: Sequence[str], kind: str, limit: int) -> Iterator[bytes]:
    """Read the content of objects, in their order.

    Args:
        git: the repository.
        names: hashes, or other names that git knows, such as ``main:manifest.json``.
        kind: of all of them: ``blob``, ``tree`` or ``commit``.
        limit: maximum size of one object in bytes.

    Raises:
        CoevoError: an object is missing, of another kind, or larger.
    """
    for start in range(0, len(names), BATCH):
        wanted = names[start : start + BATCH]
        _check(git, wanted, kind, limit)
        found = BytesIO(_ask(git, "--batch=%(objectsize)", wanted))
        for size in iter(found.readline, b""):
            yield found.read(int(size) + 1)[:-1]


def git_hash(kind: str, data: bytes) -> str:
    """Hash of a git object."""
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _check(git: Git, names: Sequence[str], kind: str, limit: int) -> None:
    """Check existence, kind and size before any object is unpacked."""
    lines = _ask(git, "--batch-check=%(objecttype) %(objectsize)", names).decode(errors="replace").splitlines()
    for name, line in zip(names, lines, strict=True):
        found, _, size = line.rpartition(" ")
        if found != kind:
            raise CoevoError(f"git object {name} is missing or not a {kind}")
        if int(size) > limit:
            raise CoevoError(
                f"git object {name} has {size} bytes, more than the {limit} of any {kind} that coevo writes"
            )


def _ask(git: Git, form: str, names: Sequence[str]) -> bytes:
    done = git.attempt("cat-file", form, stdin="".join(f"{name}\n" for name in names))
    if done.returncode != 0:
        raise CoevoError(f"git cannot read its objects in {git.root}: {' '.join(done.stderr.decode().split())}")
    return done.stdout
