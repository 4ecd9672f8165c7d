"""Append (RetroAgent section 3.3): every candidate that the bank does not hold enters; what leaves makes room.

A new entry is worth what ``bank.utility.initial`` says, and has one visit; ``bank.utility`` moves it from then on.
"""

from dataclasses import replace
from operator import attrgetter

from configs.admission import AppendAdmissionConfig
from memory.admission.base import Decision, Replay
from memory.library import Library
from memory.likeness import Likeness
from memory.writers.base import Proposal
from records.entry import Entry, also_from

MOST_SOURCES = 16
"""Source episodes of an entry that others were merged into, the first ones."""

Held = dict[str, Entry]
"""Entries by id, the oldest first."""


class AppendAdmission:
    """Merges near-duplicates, keeps the last of each pool and the most useful of all, each where it is asked to."""

    def __init__(self, config: AppendAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """The entries that enter, those that took over the sources of another, and those that leave."""
        before = {entry.id: entry for entry in sorted(library.entries, key=attrgetter("created", "id"))}
        appended = self._appended(proposal, before, revision)
        after = self._useful(self._last(appended), library)
        changed = [entry for name, entry in after.items() if before.get(name) != entry]
        retired = [replace(entry, retired=revision) for name, entry in before.items() if name not in after]
        fresh = sum(entry.id not in before for entry in changed)
        metrics = {"added": fresh, "merged": _merged(proposal, appended), "dropped": len(appended) - len(after)}
        named = {f"append/{name}": float(count) for name, count in metrics.items()}
        return Decision((*changed, *retired), metrics=named)

    def _appended(self, proposal: Proposal, before: Held, revision: int) -> Held:
        after, twins = dict(before), _Twins(before, self._config.merge)
        for entry in proposal.entries:
            twin = entry.id if entry.id in after else twins.of(entry)
            if twin is None:
                after[entry.id] = entry
            elif twin != entry.id:
                after[twin] = _joined(after[twin], entry, revision)
        return after

    def _last(self, held: Held) -> Held:
        """Without what is beyond the last entries of each pool."""
        if self._config.per_key is None:
            return held
        pools: dict[str, list[str]] = {}
        for name, entry in held.items():
            pools.setdefault(entry.scope, []).append(name)
        kept = {name for pool in pools.values() for name in pool[-self._config.per_key :]}
        return {name: entry for name, entry in held.items() if name in kept}

    def _useful(self, held: Held, library: Library) -> Held:
        """Without what is beyond the capacity; entries that were never tried go last."""
        if self._config.capacity is None:
            return held
        tried = [name for name in held if name in library.row_of]
        worst = sorted(tried, key=lambda name: float(library.utility[library.row_of[name]]))
        order = [*worst, *(name for name in held if name not in library.row_of)]
        gone = set(order[: max(0, len(held) - self._config.capacity)])
        return {name: entry for name, entry in held.items() if name not in gone}


class _Twins:
    """Finds the entry of a pool that says nearly what another one says."""

    def __init__(self, held: Held, least: float | None) -> None:
        self._least = least
        self._pools: dict[str, tuple[Likeness, list[str]]] = {}
        if least is not None:
            for entry in held.values():
                self._keep(entry)

    def of(self, entry: Entry) -> str | None:
        """The id of the nearest that is near enough; where there is none, the entry is one that others may resemble."""
        if self._least is None:
            return None
        likeness, names = self._pools.setdefault(entry.scope, (Likeness(), []))
        found, _ = likeness.nearest(entry.strategy, self._least)
        if found < 0:
            self._keep(entry)
        return names[found] if found >= 0 else None

    def _keep(self, entry: Entry) -> None:
        likeness, names = self._pools.setdefault(entry.scope, (Likeness(), []))
        likeness.add(entry.strategy)
        names.append(entry.id)


def _joined(older: Entry, entry: Entry, revision: int) -> Entry:
    """The older text with the sources of both."""
    sources = also_from(older, entry.sources).sources[: max(MOST_SOURCES, len(older.sources))]
    return older if sources == older.sources else replace(older, sources=sources, edited=revision)


def _merged(proposal: Proposal, appended: Held) -> int:
    return sum(entry.id not in appended for entry in proposal.entries)


def admission(config: AppendAdmissionConfig) -> AppendAdmission:
    """Append with the settings of a configuration."""
    return AppendAdmission(config)
