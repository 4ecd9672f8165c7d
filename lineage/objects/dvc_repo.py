"""A DVC repository that ignores the user's configuration and environment, as ``coevo.lineage.git`` does for git.

DVC merges the configuration of the system and of the user under that of a repository. A mistake there would stop a run,
and a setting such as another kind of link would change the files of a run.
"""

from functools import cached_property
from pathlib import Path

from dvc.config import Config
from dvc.repo import Repo

# Only the lineage uses git: without it DVC neither scans it nor suggests files to add.
SETTINGS = {"core": {"no_scm": True}}


class _OwnConfig(Config):  # type: ignore[misc]
    """Configuration of the repository itself, without any other level."""

    LEVELS = ("repo",)


class PrivateRepo(Repo):  # type: ignore[misc]
    """The DVC repository at ``root``."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))

    @cached_property
    def config(self) -> Config:
        """Settings, read once."""
        return _OwnConfig(self.dvc_dir, self.local_dvc_dir, fs=self.fs, config=SETTINGS)

    @cached_property
    def site_cache_dir(self) -> str:
        """Directory of DVC's database: next to its locks, for any value of ``DVC_SITE_CACHE_DIR``."""
        return str(self.tmp_dir)
