"""Artifacts (policy, optimizer, episodes) under DVC: content-addressed, in one cache shared by all runs.

Files in the work tree and in what is materialised may be hard links into the cache, so they are read-only: an artifact
is replaced as a whole, never written into.
"""

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from configs.errors import CoevoError

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc_data.hashfile.db.local import LocalHashFileDB

LINKS = ("hardlink", "copy")


class Artifacts:
    """The DVC side of a lineage whose work tree is ``root``."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.cache = cache

    def init(self) -> None:
        """Write DVC's configuration; the cache is named relative to it, so the workspace can be moved."""
        folder = self.root / ".dvc"
        folder.mkdir()
        (folder / ".gitignore").write_text("/config.local\n/tmp\n", encoding="utf-8")
        (folder / "config").write_text(
            "[core]\n    analytics = false\n    autostage = false\n    check_update = false\n"
            f'[cache]\n    dir = "{os.path.relpath(self.cache, folder)}"\n    type = "{",".join(LINKS)}"\n',
            encoding="utf-8",
        )

    def add(self, staged: Mapping[str, Path]) -> dict[str, str]:
        """Move staged files or directories into the work tree and the cache; content hash of each."""
        for name, path in staged.items():
            remove(self.root / name)
            shutil.move(path, self.root / name)
        with _one_line(f"adding {', '.join(staged)} to the cache"):
            stages = self._repo.add([str(self.root / name) for name in staged])
        return {name: str(stage.outs[0].hash_info.value) for name, stage in zip(staged, stages, strict=True)}

    def checkout(self) -> list[str]:
        """Make the work tree what its ``.dvc`` files say; names of the artifacts that had to change."""
        with _one_line("restoring artifacts from the cache"):
            changed = self._repo.checkout(force=True)
        paths = [path for kind in ("added", "modified", "deleted") for path in changed[kind]]
        return sorted({Path(path).name for path in paths})

    def discard_locks(self) -> list[str]:
        """Remove the lock table that a killed process leaves: DVC obeys it as soon as its pid is in use again."""
        table = self.root / ".dvc" / "tmp" / "rwlock"
        held = table.is_file() and '"pid"' in table.read_text(encoding="utf-8")
        table.unlink(missing_ok=True)
        return [str(table.relative_to(self.root))] if held else []

    def materialise(self, content: str, into: Path) -> None:
        """Link or copy the artifact with this content hash from the cache to ``into``, which appears complete."""
        from dvc_data.hashfile import load
        from dvc_data.hashfile.checkout import checkout
        from dvc_data.hashfile.hash_info import HashInfo

        _quieten()
        cache = objects_in(self.cache)
        fresh = into.with_name(f".{into.name}.{os.getpid()}")
        remove(fresh)
        fresh.parent.mkdir(parents=True, exist_ok=True)
        with _one_line(f"reading {into.name} from the cache"):
            checkout(str(fresh), cache.fs, load(cache, HashInfo("md5", content)), cache, force=True)
        fresh.rename(into)

    def close(self) -> None:
        """Let go of DVC's database; the next use opens it again."""
        if "_repo" in self.__dict__:
            self._repo.close()
            del self._repo

    @cached_property
    def _repo(self) -> "Repo":
        from dvc.repo import Repo

        _quieten()
        # git is ours alone: without it DVC neither scans it nor says what to add to it.
        private = {"no_scm": True, "site_cache_dir": str(self.root / ".dvc" / "tmp")}
        with _one_line(f"opening {self.root}"):
            return Repo(str(self.root), config={"core": private})


def objects_in(cache: Path) -> "LocalHashFileDB":
    """DVC's object store in a cache directory."""
    from dvc_data.hashfile.db.local import LocalHashFileDB
    from dvc_objects.fs import LocalFileSystem

    return LocalHashFileDB(LocalFileSystem(), str(cache / "files" / "md5"), type=list(LINKS))


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _quieten() -> None:
    from dvc.ui import ui

    ui.error_console.quiet = True
    for name in ("dvc.progress", "dvc_data.callbacks"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _one_line(doing: str) -> Iterator[None]:
    from dvc.exceptions import DvcException
    from dvc_data.hashfile.checkout import CheckoutError, LinkError
    from dvc_objects.errors import ObjectDBError, ObjectFormatError

    try:
        yield
    except (DvcException, CheckoutError, LinkError, ObjectDBError, ObjectFormatError, OSError) as error:
        said = " ".join(str(error).split())
        raise CoevoError(f"{doing} failed: {said}: check that the workspace's cache is whole and has room") from error
