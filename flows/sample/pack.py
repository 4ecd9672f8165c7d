"""Packing of a run without its weights, which are most of its bytes, as a small and reproducible archive.

``python -m coevo.flows.sample.pack WORKSPACE`` packs the run of ``make run`` there as the sample of the package.
"""

import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from coevo.flows.sample import ARCHIVE, RUN
from coevo.lineage.lineage import Lineage
from coevo.lineage.objects.cache import Cache
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.tasks.revision_artifacts import EPISODES, HELD_OUT

TREE = (".git/**/*", ".dvc/config", ".dvc/.gitignore", ".gitignore", "manifest.json", "*.dvc")
"""Files of a lineage, apart from its artifacts."""


def pack(paths: RunPaths, workspace: Workspace, archive: Path) -> None:
    """Pack a run that no process writes to, with paths relative to the workspace."""
    with tarfile.open(archive, "w:xz", preset=9) as made:
        for path in sorted({*_of_run(paths), *_of_cache(paths, workspace)}):
            made.add(path, path.relative_to(workspace.root), recursive=False, filter=_alike)


def _of_run(paths: RunPaths) -> Iterator[Path]:
    yield from (paths.created, paths.config)
    yield from paths.bank.rglob("*")
    for pattern in TREE:
        yield from paths.lineage.glob(pattern)


def _of_cache(paths: RunPaths, workspace: Workspace) -> Iterator[Path]:
    cache = Cache(workspace.cache)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        history = lineage.history.log()
        kept = [each.artifacts.get(EPISODES) for each in history] + [history[-1].artifacts.get(HELD_OUT)]
        contents = {content: paths.name for content in kept if content is not None}
    yield from map(cache.path, cache.closure(contents))


def _alike(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time, so that the archive is reproducible."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    return member


if __name__ == "__main__":
    packed = Workspace(Path(sys.argv[1]))
    pack(packed.existing(RUN), packed, ARCHIVE)
