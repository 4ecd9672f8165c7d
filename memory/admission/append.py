"""Append (RetroAgent section 3.3): every candidate that the bank does not hold enters; old entries make room.

A new entry starts with utility ``bank.utility.initial`` and one visit; ``bank.utility`` updates it afterwards.
"""

from dataclasses import replace
from operator import attrgetter

from coevo.configs.bank.admission_config import AppendAdmissionConfig
from coevo.memory.admission.admission import Decision, Replay
from coevo.memory.admission.neighbours import Neighbours
from coevo.memory.library import Library
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry, also_from

MAX_SOURCES = 16
"""Most source episodes of a merged entry; the first ones are kept."""

EntriesById = dict[str, Entry]
"""Entries by id, the oldest first."""


class AppendAdmission:
    """Merge near-duplicates, keep the newest entries of each pool, and keep the most useful overall, as configured."""

    def __init__(self, config: AppendAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Return the entries that enter, those with added sources, and those that leave."""
        before = {entry.id: entry for entry in sorted(library.entries, key=attrgetter("created", "id"))}
        appended = self._appended(proposal, before, revision)
        after = self._useful(self._last(appended), library)
        changed = [entry for name, entry in after.items() if before.get(name) != entry]
        retired = [replace(entry, retired=revision) for name, entry in before.items() if name not in after]
        fresh = sum(entry.id not in before for entry in changed)
        metrics = {"added": fresh, "merged": _merged(proposal, appended), "dropped": len(appended) - len(after)}
        named = {f"bank/admission/{name}": float(count) for name, count in metrics.items()}
        return Decision((*changed, *retired), metrics=named)

    def _appended(self, proposal: Proposal, before: EntriesById, revision: int) -> EntriesById:
        after, twins = dict(before), _Twins(before, self._config.merge)
        for entry in proposal.entries:
            twin = entry.id if entry.id in after else twins.of(entry)
            if twin is None:
                after[entry.id] = entry
            elif twin != entry.id:
                after[twin] = _joined(after[twin], entry, revision)
        return after

    def _last(self, held: EntriesById) -> EntriesById:
        """Keep only the newest ``per_key`` entries of each pool."""
        if self._config.per_key is None:
            return held
        pools: dict[str, list[str]] = {}
        for name, entry in held.items():
            pools.setdefault(entry.scope, []).append(name)
        kept = {name for pool in pools.values() for name in pool[-self._config.per_key :]}
        return {name: entry for name, entry in held.items() if name in kept}

    def _useful(self, held: EntriesById, library: Library) -> EntriesById:
        """Keep only the most useful entries, up to the capacity; entries never retrieved leave last."""
        if self._config.capacity is None:
            return held
        tried = [name for name in held if name in library.row_of]
        worst = sorted(tried, key=lambda name: float(library.utility[library.row_of[name]]))
        order = [*worst, *(name for name in held if name not in library.row_of)]
        gone = set(order[: max(0, len(held) - self._config.capacity)])
        return {name: entry for name, entry in held.items() if name not in gone}


class _Twins:
    """Near-duplicates within a pool."""

    def __init__(self, held: EntriesById, least: float | None) -> None:
        self._least = least
        self._texts = Neighbours(attrgetter("scope"), held.values())

    def of(self, entry: Entry) -> str | None:
        """Return the id of the nearest similar entry; without one, register this entry for later comparisons."""
        if self._least is None:
            return None
        found = self._texts.nearest(entry.strategy, entry.scope, self._least)
        if found is None:
            self._texts.add(entry)
        return found


def _joined(older: Entry, entry: Entry, revision: int) -> Entry:
    """Return the older entry with the sources of both."""
    sources = also_from(older, entry.sources).sources[: max(MAX_SOURCES, len(older.sources))]
    return older if sources == older.sources else replace(older, sources=sources, edited=revision)


def _merged(proposal: Proposal, appended: EntriesById) -> int:
    return sum(entry.id not in appended for entry in proposal.entries)


def admission(config: AppendAdmissionConfig) -> AppendAdmission:
    """Append with the settings of a configuration."""
    return AppendAdmission(config)
