"""Score-based admission (SLEA-RL section 3.4): novel candidates enter while there is room, then only by worth (z_e).

Every zone and level of the library is a shelf of limited capacity. The decision concerns a set of candidates: the
order of their proposal does not change it.
"""

from bisect import insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from coevo.configs.bank.admission_config import CapacityConfig, ScoreAdmissionConfig
from coevo.memory.admission.admission import Decision, Replay
from coevo.memory.admission.neighbours import Neighbours
from coevo.memory.library import Library
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry

OUTCOMES = ("duplicates", "refused", "replaced", "tied", "pruned")
"""Counted outcomes: candidates that are not novel, candidates without room, entries replaced by worth or in a tie, and
entries over capacity before anything entered."""


class Known:
    """Known entries: those of a library, and those added later.

    A candidate is compared with entries of its zone that the same retrieval can return: of its scope or without one.
    """

    def __init__(self, library: Library, least: float) -> None:
        """``least``: smallest similarity of two near-duplicates, see ``coevo.memory.similarity``."""
        self._least = least
        self._ids = set(library.row_of)
        self._gone: set[str] = set()
        self._texts = Neighbours(lambda entry: (entry.zone, entry.scope), library.entries)

    def has_like(self, entry: Entry) -> bool:
        """Report whether a known entry has this id (in any zone) or a similar text."""
        return entry.id in self._ids or any(self._is_near(entry, scope) for scope in {entry.scope, ""})

    def add(self, entry: Entry) -> None:
        """Add the entry to the known ones."""
        self._ids.add(entry.id)
        self._texts.add(entry)

    def forget(self, entry: Entry) -> None:
        """Remove the text of an entry that leaves the bank; its id stays known."""
        self._gone.add(entry.id)

    def _is_near(self, entry: Entry, scope: str) -> bool:
        near = self._texts.near(entry.strategy, (entry.zone, scope), self._least)
        return any(name not in self._gone for name in near)


class ScoreAdmission:
    """Admission in order of worth, highest first; equal worth in order of id."""

    def __init__(self, config: ScoreAdmissionConfig) -> None:
        self._config = config

    def decide(self, proposal: Proposal, library: Library, replay: Replay, revision: int) -> Decision:
        """Return the entries that enter and those retired for them; nothing is replayed."""
        shelves = _ScoredShelves(self._config, library)
        candidates = [
            _Held(proposal.worth[entry.id], True, 0.5, revision, entry.id, entry) for entry in proposal.entries
        ]
        for candidate in sorted(candidates, key=lambda each: (-each.worth, each.id)):
            shelves.offer(candidate)
        entered = shelves.entered()
        retired = [replace(entry, retired=revision) for entry in shelves.retired]
        return Decision(
            entries=(*(held.entry for held in entered), *retired),
            utility={held.id: held.worth for held in entered},
            metrics={f"bank/admission/{name}": float(count) for name, count in shelves.counts().items()},
        )


@dataclass(frozen=True, slots=True, order=True)
class _Held:
    """An entry and its rank on a shelf: the lowest leaves first; a candidate of this proposal never leaves in a tie."""

    worth: float
    fresh: bool
    usefulness: float
    created: int
    id: str
    entry: Entry = field(compare=False)


class _ScoredShelves:
    """Entries of every zone and level, in the order in which they leave."""

    def __init__(self, config: ScoreAdmissionConfig, library: Library) -> None:
        self.retired: list[Entry] = []
        self._config = config
        self._known = Known(library, config.novelty)
        self._outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        self._shelves: defaultdict[tuple[str, str], list[_Held]] = defaultdict(list)
        for entry, worth, useful in zip(library.entries, library.utility, library.usefulness, strict=True):
            held = _Held(float(worth), False, float(useful), entry.created, entry.id, entry)
            insort(self._shelves[entry.zone, entry.level], held)
        for (zone, _), shelf in self._shelves.items():
            while len(shelf) > capacity(config.capacity, zone):
                self._retire(shelf, "pruned")

    def offer(self, candidate: _Held) -> None:
        """Place a candidate if it is novel and its shelf has room."""
        entry = candidate.entry
        shelf = self._shelves[entry.zone, entry.level]
        if self._known.has_like(entry):
            self._outcomes["duplicates"] += 1
        elif len(shelf) < capacity(self._config.capacity, entry.zone) or self._makes_room(shelf, candidate):
            insort(shelf, candidate)
            self._known.add(entry)
        else:
            self._outcomes["refused"] += 1

    def entered(self) -> list[_Held]:
        """Placed candidates, by zone and level."""
        return [held for _, shelf in sorted(self._shelves.items()) for held in shelf if held.fresh]

    def counts(self) -> dict[str, int]:
        """Count of each outcome, and of the entries of each zone afterwards."""
        zones = Counter({"strategies": 0, "warnings": 0})
        for (zone, _), shelf in self._shelves.items():
            zones["warnings" if zone == "warning" else "strategies"] += len(shelf)
        return {**self._outcomes, **zones}

    def _makes_room(self, shelf: list[_Held], candidate: _Held) -> bool:
        lowest = shelf[0]
        if candidate.worth > lowest.worth:
            self._retire(shelf, "replaced")
        elif candidate.worth == lowest.worth and not lowest.fresh and self._config.ties == "replace":
            self._retire(shelf, "tied")
        else:
            return False
        return True

    def _retire(self, shelf: list[_Held], outcome: str) -> None:
        entry = shelf.pop(0).entry
        self._known.forget(entry)
        self.retired.append(entry)
        self._outcomes[outcome] += 1


def capacity(config: CapacityConfig, zone: str) -> int:
    """Most active entries of each level of a zone."""
    return config.warning if zone == "warning" else config.strategy


def admission(config: ScoreAdmissionConfig) -> ScoreAdmission:
    """Admission by score with the settings of a configuration."""
    return ScoreAdmission(config)
