"""Episodes as an artifact of a revision."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from records.arrow import episodes_to_table
from records.episode import Episode


def write_episodes(episodes: Iterable[Episode], directory: Path) -> None:
    """Episodes as Parquet in a new directory; they hold every retrieval and its outcome."""
    directory.mkdir(parents=True)
    pq.write_table(episodes_to_table(episodes), directory / "episodes.parquet", compression="zstd")
