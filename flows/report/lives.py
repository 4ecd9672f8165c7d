"""How each entry has lived: where it was shown, how those episodes ended, and how others of their kind did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from records.entry import Entry

COLUMNS = ("revision", "kind", "success", "turns.list.element.retrieved")
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Life:
    """One entry and its uses.

    Attributes:
        entry: as it is.
        uses: by revision, training episodes that had it in a prompt, and how many of them succeeded.
        gain: successes above what as many of the other episodes of the same revision and kind of task would have had;
            episodes without any such others are left out.
        variance: of the gain, episodes being independent.
    """

    entry: Entry
    uses: dict[int, tuple[int, int]] = field(default_factory=dict)
    gain: float = 0.0
    variance: float = 0.0

    @property
    def shown(self) -> int:
        """Episodes that had it in a prompt."""
        return sum(shown for shown, _ in self.uses.values())

    @property
    def solved(self) -> int:
        """Those of them that succeeded."""
        return sum(solved for _, solved in self.uses.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Normal 95 % interval of the gain."""
        half = 1.96 * float(self.variance) ** 0.5
        return self.gain - half, self.gain + half


def lives(entries: Iterable[Entry], episodes: Iterable[pa.Table]) -> dict[str, Life]:
    """The life of every entry by id, in the order of birth; ``episodes`` have ``COLUMNS``."""
    found = {entry.id: Life(entry) for entry in sorted(entries, key=lambda entry: (entry.created, entry.id))}
    tables = [table for table in episodes if table.num_rows]
    if tables:
        _count(found, pa.concat_tables(tables).combine_chunks())
    return found


def extremes(found: Mapping[str, Life], count: int) -> tuple[list[Life], list[Life]]:
    """Entries with the highest and with the lowest success when shown, by gain; only where it is not 0.

    Gains are associations: what made an entry fit a task may have made the task hard.
    """
    ranked = sorted(found.values(), key=lambda life: (-life.gain, life.entry.id))
    return [life for life in ranked[:count] if life.gain > 0], [life for life in ranked[::-1][:count] if life.gain < 0]


def _count(found: dict[str, Life], episodes: pa.Table) -> None:
    stratum, revisions = _strata(episodes)
    success = episodes["success"].to_numpy().astype(np.int64)
    episode, name, names = _shown(episodes["turns"].combine_chunks())
    total, solved = np.bincount(stratum), np.bincount(stratum, weights=success)
    # One group for each entry and stratum that met.
    groups, group = np.unique(name * len(total) + stratum[episode], return_inverse=True)
    shown, won = np.bincount(group), np.bincount(group, weights=success[episode])
    where = groups % len(total)
    others = total[where] - shown
    rate = np.divide(solved[where] - won, others, out=np.zeros(len(groups)), where=others > 0)
    pooled = solved[where] / total[where]
    gain = np.where(others > 0, won - shown * rate, 0.0)
    spread = np.divide(shown * total[where], others, out=np.zeros(len(groups)), where=others > 0)
    variance = pooled * (1 - pooled) * spread
    for number, each in enumerate(groups // len(total)):
        life = found.get(names[each])
        if life is not None:
            revision = int(revisions[where[number]])
            before = life.uses.get(revision, (0, 0))
            life.uses[revision] = (before[0] + int(shown[number]), before[1] + int(won[number]))
            life.gain += float(gain[number])
            life.variance += float(variance[number])


def _strata(episodes: pa.Table) -> tuple[Ints, Ints]:
    """Which (revision, kind of task) each episode belongs to, and the revision of each of those."""
    revision = episodes["revision"].to_numpy().astype(np.int64)
    kind = pc.dictionary_encode(episodes["kind"]).combine_chunks().indices.to_numpy().astype(np.int64)
    many = int(kind.max()) + 1
    found, stratum = np.unique(revision * many + kind, return_inverse=True)
    return stratum, found // many


def _shown(turns: pa.ListArray) -> tuple[Ints, Ints, list[str]]:
    """Pairs of an episode's row and the number of an entry that it was shown, each once; the entries' ids."""
    retrieved = pc.struct_field(turns.flatten(), "retrieved")
    episode = pc.list_parent_indices(turns).to_numpy()[pc.list_parent_indices(retrieved).to_numpy()]
    ids = pc.dictionary_encode(retrieved.flatten())
    names = ids.dictionary.to_pylist()
    pairs = np.unique(episode.astype(np.int64) * max(1, len(names)) + ids.indices.to_numpy())
    return pairs // max(1, len(names)), pairs % max(1, len(names)), names
