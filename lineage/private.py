"""A DVC repository that is deaf to the user's configuration and environment, as ``lineage.git`` is for git.

DVC merges the configuration of the system and of the user under that of a repository. A mistake there would stop a run,
and a setting such as another kind of link would change what it leaves.
"""

from functools import cached_property
from pathlib import Path

from dvc.config import Config
from dvc.repo import Repo

# git is the lineage's alone: without it DVC neither scans it nor says what to add to it.
SETTINGS = {"core": {"no_scm": True}}


class _OwnConfig(Config):  # type: ignore[misc]
    """Configuration of the repository itself, and of nobody else."""

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
        """Directory of DVC's database: beside its locks, whatever ``DVC_SITE_CACHE_DIR`` says."""
        return str(self.tmp_dir)
