"""Lives of entries: the episodes that retrieved them, with their outcomes, compared with others of their kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coevo.records.arrays import Floats, Integers
from coevo.records.entry import Entry
from coevo.records.intervals import around

COLUMNS = ("revision", "kind", "task_id", "success", "turns.list.element.retrieved")


@dataclass(slots=True)
class Life:
    """One entry and its uses.

    Attributes:
        entry: current content.
        uses: training episodes with the entry in a prompt, and how many succeeded, by revision.
        gain: successes above those expected from the other episodes of the same revision and kind of task;
            episodes without such others do not count.
        variance: variance of the gain over tasks; episodes of a task are not independent, a hard one fails them all.
        compared: number of its episodes that have such others.
        expected: successes that these would have at the rate of their others.
    """

    entry: Entry
    uses: dict[int, tuple[int, int]] = field(default_factory=dict)
    gain: float = 0.0
    variance: float = 0.0
    compared: int = 0
    expected: float = 0.0

    @property
    def shown(self) -> int:
        """Episodes with the entry in a prompt."""
        return sum(shown for shown, _ in self.uses.values())

    @property
    def solved(self) -> int:
        """Successful ones of these episodes."""
        return sum(solved for _, solved in self.uses.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Normal 95 % interval of the gain, over tasks."""
        found = around(self.gain, float(self.variance) ** 0.5)
        return found.low, found.high


def lives(entries: Iterable[Entry], episodes: Iterable[pa.Table]) -> dict[str, Life]:
    """Lives of entries by id, in order of creation; ``episodes`` have ``COLUMNS``."""
    found = {entry.id: Life(entry) for entry in sorted(entries, key=lambda entry: (entry.created, entry.id))}
    tables = [table for table in episodes if table.num_rows]
    if tables:
        _count(found, pa.concat_tables(tables).combine_chunks())
    return found


def extremes(found: Mapping[str, Life], count: int) -> tuple[list[Life], list[Life]]:
    """Entries with the highest and with the lowest gain; gains of 0 are omitted.

    Gains are associations: the property that makes an entry match a task may also make the task hard.
    """
    ranked = sorted(found.values(), key=lambda life: (-life.gain, life.entry.id))
    return [life for life in ranked[:count] if life.gain > 0], [life for life in ranked[::-1][:count] if life.gain < 0]


def _count(found: dict[str, Life], episodes: pa.Table) -> None:
    stratum, revisions = _strata(episodes)
    task = np.unique(stratum * episodes.num_rows + _codes(episodes["task_id"]), return_inverse=True)[1]
    success = episodes["success"].to_numpy().astype(np.int64)
    episode, name, names = shown_in(episodes["turns"].combine_chunks())
    total, solved = np.bincount(stratum), np.bincount(stratum, weights=success)
    # One group per entry and stratum that occur together.
    groups, group = np.unique(name * len(total) + stratum[episode], return_inverse=True)
    shown, won = np.bincount(group), np.bincount(group, weights=success[episode])
    where = groups % len(total)
    others = total[where] - shown
    rate = np.divide(solved[where] - won, others, out=np.zeros(len(groups)), where=others > 0)
    pooled = solved / total
    gain = np.where(others > 0, won - shown * rate, 0.0)
    weight = np.divide(shown, others, out=np.zeros(len(groups)), where=others > 0)
    home = np.zeros(int(task.max()) + 1, dtype=np.int64)
    home[task] = stratum
    tasks, squares = _over_tasks(_Tasks(task, home, success - pooled[stratum]), episode, group, weight, where)
    alone = (pooled * (1 - pooled))[where] * (1 + weight) * shown
    variance = np.where(tasks > 1, squares * tasks / np.maximum(tasks - 1, 1), alone) * (others > 0)
    for number, each in enumerate(groups // len(total)):
        life = found.get(names[each])
        if life is not None:
            revision = int(revisions[where[number]])
            before = life.uses.get(revision, (0, 0))
            life.uses[revision] = (before[0] + int(shown[number]), before[1] + int(won[number]))
            life.gain += float(gain[number])
            life.variance += float(variance[number])
            life.compared += int(shown[number]) if others[number] else 0
            life.expected += float(shown[number] * rate[number])


class _Tasks(NamedTuple):
    """Number of each episode's task, stratum of each task, and success of each episode minus its stratum's mean."""

    of: Integers
    stratum: Integers
    residual: Floats


def _over_tasks(
    tasks: _Tasks, episode: Integers, group: Integers, weight: Floats, where: Integers
) -> tuple[Integers, Floats]:
    """Tasks of each group's stratum, and the sum of squares of their parts of the group's gain, both [groups].

    The gain of a group is the sum over tasks of (1 + weight) times the residuals of the episodes that were shown the
    entry, minus weight times those of all episodes.

    Args:
        tasks: of the episodes.
        episode: an episode in which an entry was shown, [uses].
        group: its group, of entry and stratum, [uses].
        weight: episodes that were shown the entry, per other one, [groups].
        where: stratum of each group, [groups].
    """
    every = np.bincount(tasks.of, weights=tasks.residual)
    pairs, pair = np.unique(group * len(every) + tasks.of[episode], return_inverse=True)
    ours, its = np.bincount(pair, weights=tasks.residual[episode]), pairs // len(every)
    ours = ours * (1 + weight[its])
    crossed = np.bincount(its, weights=ours * (ours - 2 * weight[its] * every[pairs % len(every)]))
    squares = crossed + weight**2 * np.bincount(tasks.stratum, weights=every**2)[where]
    return np.bincount(tasks.stratum)[where], np.maximum(squares, 0.0)


def _codes(values: pa.ChunkedArray) -> Integers:
    """Number of each text among the different ones."""
    codes: Integers = pc.dictionary_encode(values).combine_chunks().indices.to_numpy().astype(np.int64)
    return codes


def _strata(episodes: pa.Table) -> tuple[Integers, Integers]:
    """Stratum (revision, kind of task) of each episode, and the revision of each stratum."""
    revision = episodes["revision"].to_numpy().astype(np.int64)
    kind = _codes(episodes["kind"])
    many = int(kind.max()) + 1
    found, stratum = np.unique(revision * many + kind, return_inverse=True)
    return stratum, found // many


def shown_in(turns: pa.ListArray) -> tuple[Integers, Integers, list[str]]:
    """Unique pairs of an episode's row and the number of a retrieved entry, and the entries' ids by number."""
    retrieved = pc.struct_field(turns.flatten(), "retrieved")
    episode = pc.list_parent_indices(turns).to_numpy()[pc.list_parent_indices(retrieved).to_numpy()]
    ids = pc.dictionary_encode(retrieved.flatten())
    names = ids.dictionary.to_pylist()
    pairs = np.unique(episode.astype(np.int64) * max(1, len(names)) + ids.indices.to_numpy())
    return pairs // max(1, len(names)), pairs % max(1, len(names)), names
