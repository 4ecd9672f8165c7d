"""Packing: a run without its weights, which are most of its bytes, as one archive that is small and always the same."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

from lineage.cache import Cache
from lineage.lineage import Lineage
from lineage.workspace import RunPaths, Workspace

TREE = (".git/**/*", ".dvc/config", ".dvc/.gitignore", ".gitignore", "manifest.json", "*.dvc")
"""What a lineage consists of besides its artifacts."""
KEPT = "episodes"
"""The artifact that goes along."""


def pack(paths: RunPaths, place: Workspace, archive: Path) -> None:
    """Write a run that nothing writes to as an archive of its files, by their paths in the workspace."""
    with tarfile.open(archive, "w:xz", preset=9) as made:
        for path in sorted({*_of_run(paths), *_of_cache(paths, place)}):
            made.add(path, path.relative_to(place.root), recursive=False, filter=_alike)


def _of_run(paths: RunPaths) -> Iterator[Path]:
    yield from (paths.created, paths.config)
    yield from paths.bank.rglob("*")
    for pattern in TREE:
        yield from paths.lineage.glob(pattern)


def _of_cache(paths: RunPaths, place: Workspace) -> Iterator[Path]:
    cache = Cache(place.cache)
    with Lineage.open(paths.lineage, place.cache) as lineage:
        contents = {each.artifacts[KEPT]: paths.name for each in lineage.log() if KEPT in each.artifacts}
    yield from map(cache.path, cache.closure(contents))


def _alike(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whoever packs it, and whenever."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    return member
