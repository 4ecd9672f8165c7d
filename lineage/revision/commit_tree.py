"""The tree of a revision's commit: a manifest, the ``.dvc`` file of each artifact, and coevo's fixed files.

Git and DVC act on a tree: they create its links, and follow the paths in its ``.dvc`` files. So it is checked as an
object, before any of it is checked out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from coevo.lineage.blobs import BATCH, git_hash, read_objects
from coevo.lineage.git import Git
from coevo.lineage.names import ARTIFACT
from coevo.lineage.objects.pointer import LIMIT as POINTER_LIMIT
from coevo.lineage.objects.pointer import SUFFIX, Pointer
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.manifest_schema import LIMIT as MANIFEST_LIMIT
from coevo.utilities.errors import CoevoError

MANIFEST = "manifest.json"
FILE, FOLDER = "100644", "40000"
ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
KNOWN = re.compile(rf"{re.escape(MANIFEST)}|{ARTIFACT}{re.escape(SUFFIX)}")
LIMIT = 1 << 16
"""Maximum bytes of a tree."""
TreeEntry = tuple[str, str]
"""Mode and hash."""


@dataclass(frozen=True)
class _Tree:
    """Hash of the manifest's blob, and of each ``.dvc`` file's blob by artifact."""

    manifest: str
    pointers: Mapping[str, str]


def read_revisions(
    git: Git, commits: Sequence[str], own: Mapping[str, str], first: int = 0
) -> Iterator[tuple[Manifest, Sequence[Pointer]]]:
    """Read manifest and ``.dvc`` files of these commits, a few at a time.

    Args:
        git: the repository.
        commits: their hashes.
        own: text by path of the files that coevo creates in every lineage.
        first: number of the first revision, for messages.

    Raises:
        CoevoError: a tree has any other entry, or a file that is not a regular one; a manifest is not the canonical
            JSON of one; a ``.dvc`` file is malformed, missing or too many, or names another content than the manifest.
    """
    expected = _expected(own)
    for start in range(0, len(commits), BATCH):
        number = first + start
        trees = _trees(git, commits[start : start + BATCH], expected, number)
        manifests = read_objects(git, [tree.manifest for tree in trees], "blob", MANIFEST_LIMIT)
        wanted = [sha for tree in trees for sha in tree.pointers.values()]
        texts = read_objects(git, wanted, "blob", POINTER_LIMIT)
        for offset, (tree, content) in enumerate(zip(trees, manifests, strict=True)):
            with _naming(number + offset):
                manifest = Manifest.exactly(content)
                yield manifest, _pointers(tree, manifest, list(islice(texts, len(tree.pointers))))


def _trees(git: Git, commits: Sequence[str], expected: Mapping[str, TreeEntry], first: int) -> list[_Tree]:
    found = []
    contents = read_objects(git, [f"{commit}^{{tree}}" for commit in commits], "tree", LIMIT)
    for number, content in enumerate(contents, first):
        with _naming(number):
            found.append(_tree(_entries(content), expected))
    return found


def _entries(content: bytes) -> dict[str, TreeEntry]:
    """Entries of a tree object by name."""
    rows = ENTRY.findall(content)
    found = {name.decode(errors="backslashreplace"): (mode.decode(), sha.hex()) for mode, name, sha in rows}
    if len(found) != len(rows) or sum(len(mode) + len(name) + 22 for mode, name, _ in rows) != len(content):
        raise CoevoError("its tree is malformed")
    return found


def _tree(entries: Mapping[str, TreeEntry], expected: Mapping[str, TreeEntry]) -> _Tree:
    for name, entry in expected.items():
        if entries.get(name) != entry:
            raise CoevoError(f"{name} is not as coevo writes it")
    for name, (mode, _) in entries.items():
        if name not in expected and (mode != FILE or not KNOWN.fullmatch(name)):
            raise CoevoError(f"its tree holds {name[:100]!r} with mode {mode}, which coevo never writes")
    if MANIFEST not in entries:
        raise CoevoError(f"its tree lacks {MANIFEST}")
    others = entries.keys() - expected.keys() - {MANIFEST}
    return _Tree(entries[MANIFEST][1], {name.removesuffix(SUFFIX): entries[name][1] for name in sorted(others)})


def _pointers(tree: _Tree, manifest: Manifest, texts: Sequence[bytes]) -> list[Pointer]:
    if not isinstance(manifest.state.get("artifacts"), dict):
        raise CoevoError("its manifest names no artifacts")
    odd = sorted(tree.pointers.keys() ^ manifest.artifacts.keys())
    if odd:
        raise CoevoError(f"the artifact {odd[0]!r} has a {SUFFIX} file or is in the manifest, but not both")
    pairs = zip(tree.pointers, texts, strict=True)
    pointers = [Pointer.parse(text.decode(errors="replace"), name) for name, text in pairs]
    for pointer in pointers:
        if pointer.content != manifest.artifacts[pointer.name]:
            raise CoevoError(f"{pointer.name}{SUFFIX} does not name the {pointer.name} of its manifest")
    return pointers


def _expected(own: Mapping[str, str]) -> dict[str, TreeEntry]:
    """Fixed files of a revision as entries of a tree, by git hash: one different byte gives another hash."""
    found: dict[str, TreeEntry] = {}
    folders = defaultdict[str, dict[str, str]](dict)
    for path, text in own.items():
        folder, _, name = path.rpartition("/")
        folders[folder][name] = git_hash("blob", text.encode())
    for folder, files in folders.items():
        data = b"".join(f"{FILE} {name}\0".encode() + bytes.fromhex(files[name]) for name in sorted(files))
        found |= {folder: (FOLDER, git_hash("tree", data))} if folder else {n: (FILE, sha) for n, sha in files.items()}
    return found


@contextmanager
def _naming(number: int) -> Iterator[None]:
    try:
        yield
    except CoevoError as error:
        raise CoevoError(f"revision {number}: {error}") from error
