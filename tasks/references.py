"""Reference episodes as an artifact of a revision: a resumed or rolled-back run goes on from those of its revision."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from configs.run import RunConfig
from memory.references import References
from records.arrow import table_to_episodes
from records.task import key_by
from tasks.episodes import write_episodes

FOLDER = "references"
"""Name of the artifact."""


def references_of(config: RunConfig, directory: Path | None) -> References:
    """The references of a run: those of a committed artifact, none where there is none."""
    if config.bank is None:
        return References(key_by("scope"), 0)
    episodes = [] if directory is None else table_to_episodes(pq.read_table(directory / "episodes.parquet"))
    return References(key_by(config.bank.key), config.bank.references, episodes)


def write_references(references: References, staging: Path) -> None:
    """Stage the references for the commit, in place of those that an earlier firing of the revision has staged."""
    directory = staging / FOLDER
    if directory.exists():
        shutil.rmtree(directory)
    write_episodes(references.episodes(), directory)
