"""Artifacts of a revision that its steps make: episodes, reference episodes, and baselines of rewards.

    episodes/episodes.parquet      training episodes, with every retrieval and its outcome
    held_out/episodes.parquet      held-out episodes, if the revision was evaluated, with ``HELD_OUT_COLUMNS``
    references/episodes.parquet    reference episodes of the writer
    baselines/baselines.json       by task id, the highest mean success of a group so far (RetroAgent's Phi)
    trials/trials.json             candidates on trial, with the rewards of their groups so far
    retirement_counters/
                                   firings in a row that neither judged nor retrieved an entry, for retirement
    source_tasks/source_tasks.json tasks that entries were written from, for the quality of retrieval

A resumed or rolled-back run continues from those of its revision.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from coevo.configs.run_config import RunConfig
from coevo.lineage.lineage import Lineage
from coevo.memory import retirement_counters, source_tasks, trials
from coevo.memory.evidence.references import References
from coevo.memory.retirement_counters import RetirementCounter
from coevo.memory.source_tasks import SourceTask
from coevo.memory.trials import OnTrial
from coevo.records.arrow import episodes_to_table, table_to_episodes
from coevo.records.episode import Episode
from coevo.records.task import key_by
from coevo.tasks.pending_revision import HeldOutEpisode

# Names of the artifacts; the file of one with JSON has its name, too.
EPISODES, REFERENCES, HELD_OUT = "episodes", "references", "held_out"
BASELINES, TRIALS, RETIREMENT_COUNTERS, SOURCE_TASKS = "baselines", "trials", "retirement_counters", "source_tasks"
PARQUET = "episodes.parquet"
HELD_OUT_COLUMNS = ("panel", "reason", "lessons")
"""Columns of held-out episodes beside those of training episodes; the last two are empty for a success."""


def write_episodes(episodes: Iterable[Episode], directory: Path) -> None:
    """Write episodes as Parquet in a new directory."""
    directory.mkdir(parents=True)
    pq.write_table(episodes_to_table(episodes), directory / PARQUET, compression="zstd")


def write_held_out(episodes: Sequence[HeldOutEpisode], directory: Path) -> None:
    """Write held-out episodes as Parquet in a new directory."""
    directory.mkdir(parents=True)
    table = episodes_to_table(each.episode for each in episodes)
    for name in HELD_OUT_COLUMNS:
        table = table.append_column(name, pa.array([getattr(each, name) for each in episodes], pa.string()))
    pq.write_table(table, directory / PARQUET, compression="zstd")


def read_episodes(directory: Path) -> list[Episode]:
    """Episodes of a committed artifact."""
    return table_to_episodes(pq.read_table(directory / PARQUET))


def episodes_of(lineage: Lineage, revision: int, scratch: Path) -> list[Episode]:
    """Training episodes of one revision.

    Raises:
        CoevoError: they were dropped, or their artifact is damaged.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as directory:
        return read_episodes(lineage.artifacts.materialise(revision, EPISODES, Path(directory) / EPISODES))


def held_out_of(lineage: Lineage, revision: int, scratch: Path) -> list[HeldOutEpisode]:
    """Held-out episodes that a revision keeps.

    Raises:
        CoevoError: they were dropped, or their artifact is damaged.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as directory:
        files = lineage.artifacts.materialise(revision, HELD_OUT, Path(directory) / HELD_OUT)
        table = pq.read_table(files / PARQUET)
    told = table.select(list(HELD_OUT_COLUMNS)).to_pylist()
    return [
        HeldOutEpisode(row["panel"], episode, row["reason"], row["lessons"])
        for episode, row in zip(table_to_episodes(table), told, strict=True)
    ]


def references_of(config: RunConfig, directory: Path | None) -> References:
    """References of a run, read from a committed artifact; none for None."""
    if config.bank is None:
        return References(key_by("scope"), 0)
    episodes = [] if directory is None else read_episodes(directory)
    return References(key_by(config.bank.key), config.bank.references, episodes)


def write_references(references: References, staging: Path) -> None:
    """Stage the references for the commit, in place of those that an earlier firing of the revision has staged."""
    directory = staging / REFERENCES
    if directory.exists():
        shutil.rmtree(directory)
    write_episodes(references.episodes(), directory)


def write_baselines(baselines: Mapping[str, float], staging: Path) -> None:
    """Stage the baselines for the commit, in place of those that an earlier firing of the revision has staged."""
    _write(json.dumps(dict(baselines), sort_keys=True, indent=0), BASELINES, staging)


def read_baselines(directory: Path | None) -> dict[str, float]:
    """Baselines of a committed artifact; none for None."""
    return {} if directory is None else dict(json.loads(_read(directory, BASELINES)))


def write_trials(candidates: Sequence[OnTrial], staging: Path) -> None:
    """Stage the candidates on trial for the commit."""
    _write(trials.text(candidates), TRIALS, staging)


def read_trials(directory: Path | None) -> list[OnTrial]:
    """Candidates on trial of a committed artifact; none for None."""
    return [] if directory is None else trials.parse(_read(directory, TRIALS))


def write_retirement_counters(counters: Mapping[str, RetirementCounter], staging: Path) -> None:
    """Stage the retirement counters of entries for the commit."""
    _write(retirement_counters.text(counters), RETIREMENT_COUNTERS, staging)


def read_retirement_counters(directory: Path | None) -> dict[str, RetirementCounter]:
    """Retirement counters of a committed artifact, by entry id; none for None."""
    return {} if directory is None else retirement_counters.parse(_read(directory, RETIREMENT_COUNTERS))


def write_source_tasks(tasks: Iterable[SourceTask], staging: Path) -> None:
    """Stage the tasks that entries were written from for the commit."""
    _write(source_tasks.text(tasks), SOURCE_TASKS, staging)


def read_source_tasks(directory: Path | None) -> dict[str, SourceTask]:
    """Tasks of a committed artifact, by id; none for None."""
    return {} if directory is None else source_tasks.parse(_read(directory, SOURCE_TASKS))


def _write(text: str, name: str, staging: Path) -> None:
    (staging / name).mkdir(parents=True, exist_ok=True)
    _file(staging / name, name).write_text(text + "\n", encoding="utf-8")


def _read(directory: Path, name: str) -> str:
    return _file(directory, name).read_text(encoding="utf-8")


def _file(directory: Path, name: str) -> Path:
    return directory / f"{name}.json"
