"""Episodes as an artifact of a revision."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from lineage.lineage import Lineage
from records.arrow import episodes_to_table, table_to_episodes
from records.episode import Episode


def write_episodes(episodes: Iterable[Episode], directory: Path) -> None:
    """Episodes as Parquet in a new directory; they hold every retrieval and its outcome."""
    directory.mkdir(parents=True)
    pq.write_table(episodes_to_table(episodes), directory / "episodes.parquet", compression="zstd")


def episodes_of(lineage: Lineage, revision: int, scratch: Path) -> list[Episode]:
    """Training episodes of one revision.

    Raises:
        CoevoError: they were dropped, or their artifact is damaged.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as place:
        directory = lineage.materialise(revision, "episodes", Path(place) / "episodes")
        return table_to_episodes(pq.read_table(directory / "episodes.parquet"))
