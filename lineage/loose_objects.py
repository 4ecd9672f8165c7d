"""Objects of git that lie in files of their own, as those of a new commit do. Reading one starts no process of git."""

import re
import zlib
from hashlib import sha1
from pathlib import Path

NAME = re.compile(r"[0-9a-f]{40}")
DIGEST_BYTES = 20


def branch_commit(git_directory: Path, branch: str) -> str:
    """Commit of a branch.

    Raises:
        OSError: the branch has no file of its own.
        ValueError: the file names no commit.
    """
    return _checked((git_directory / branch).read_text(encoding="ascii").strip())


def loose_object(git_directory: Path, name: str, kind: str) -> bytes:
    """Content of an object by its name.

    Args:
        git_directory: the directory ``.git``.
        name: hash of the object.
        kind: ``commit``, ``tree`` or ``blob``.

    Raises:
        OSError: it has no file of its own: it is in a pack, or missing.
        ValueError: it is of another kind, or damaged.
    """
    file = git_directory / "objects" / _checked(name)[:2] / name[2:]
    try:
        stored = zlib.decompress(file.read_bytes())
    except zlib.error as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    head, _, content = stored.partition(b"\0")
    if sha1(stored, usedforsecurity=False).hexdigest() != name or head != f"{kind} {len(content)}".encode():
        raise ValueError(f"{file} is not the {kind} that its name states")
    return content


def named_in(tree: bytes, name: str) -> str:
    """Hash of a tree's entry by the entry's name.

    Raises:
        ValueError: the tree has no such entry.
    """
    at, wanted = 0, name.encode()
    while at < len(tree):
        end = tree.index(b"\0", at)
        if tree[at:end].partition(b" ")[2] == wanted:
            return tree[end + 1 : end + 1 + DIGEST_BYTES].hex()
        at = end + 1 + DIGEST_BYTES
    raise ValueError(f"no entry {name!r}")


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is not the name of an object")
    return name
