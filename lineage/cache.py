"""The cache that all runs share: which of its objects somebody needs, and the rest removed."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from configs.errors import CoevoError
from lineage.artifacts import objects_in
from lineage.usage import allocated

FOLDER = ".dir"
"""Suffix of an object that lists the files of a directory."""


class Cache:
    """The objects under ``root``, by content hash."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def objects(self) -> dict[str, int]:
        """Bytes that each object takes on disk."""
        found = (self._root / "files" / "md5").glob("[0-9a-f][0-9a-f]/*")
        return {path.parent.name + path.name: allocated(path) for path in found}

    def closure(self, contents: Mapping[str, str]) -> set[str]:
        """The objects that artifacts consist of.

        Args:
            contents: for each artifact's content hash, who needs it.

        Raises:
            CoevoError: an artifact is not in the cache, so what it consists of is unknown.
        """
        return {oid for content, owner in contents.items() for oid in self._parts(content, owner)}

    def remove(self, objects: Iterable[str]) -> None:
        """Remove objects; lists of directories go first, so that none is left whose files are gone."""
        for oid in sorted(objects, key=lambda oid: not oid.endswith(FOLDER)):
            (self._root / "files" / "md5" / oid[:2] / oid[2:]).unlink(missing_ok=True)

    def _parts(self, content: str, owner: str) -> list[str]:
        if not content.endswith(FOLDER):
            return [content]
        from dvc_data.hashfile.hash_info import HashInfo
        from dvc_data.hashfile.tree import Tree
        from dvc_objects.errors import ObjectFormatError

        try:
            tree = Tree.load(objects_in(self._root), HashInfo("md5", content))
        except (ObjectFormatError, OSError) as error:
            raise CoevoError(
                f"{owner}: object {content} is not readable in {self._root}, so what it needs is unknown: "
                "bring the cache back from a copy; nothing was removed"
            ) from error
        return [content, *(str(info.value) for _, _, info in tree)]
