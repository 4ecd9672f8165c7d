"""The writer of SLEA-RL (section 3.4): lessons of the best episodes, and final errors of the worst, without a model."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from statistics import median

from coevo.configs.bank.writer import QuoteExtremesConfig
from coevo.memory.evidence.contrasts import lessons
from coevo.memory.evidence.reward_extremes import best, foremost, level, partition, was_ended, worst
from coevo.memory.writers.writer import Evidence, Proposal, worth
from coevo.records.entry import Entry, rescoped
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

Draw = Callable[[Episode, int], list[Entry]]
"""Function that returns the lessons of an episode as entries of a revision."""


class ExtremesWriter:
    """Writer that quotes feedback; reads only text, rewards and ends of episodes, and the kinds of their tasks."""

    def __init__(self, config: QuoteExtremesConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """Strategies first, then warnings; entries of the library are not proposed again.

        The worth of an entry is the mean reward of its source episodes (z_e).
        """
        if not evidence.episodes:
            return Proposal()
        upper, lower = partition(evidence.episodes)
        known = set(evidence.library.row_of)
        strategies = self._strategies(upper, evidence.revision, known)
        warnings = self._warnings(lower, evidence.revision, known | {entry.id for entry in strategies})
        entries = (*strategies, *warnings)
        counts = {"upper": len(upper), "lower": len(lower), "strategies": len(strategies), "warnings": len(warnings)}
        return Proposal(
            entries=entries,
            worth=worth(entries, evidence.episodes),
            counts={name: float(count) for name, count in counts.items()}
            | {"median_reward": median(episode.reward for episode in evidence.episodes)},
        )

    def _strategies(self, upper: Sequence[Episode], revision: int, known: Set[str]) -> list[Entry]:
        looked_at = foremost(upper, best)[: self._config.trajectories]
        return self._entries(looked_at, discoveries, "strategy", revision, known)[: self._config.strategies]

    def _warnings(self, lower: Sequence[Episode], revision: int, known: Set[str]) -> list[Entry]:
        looked_at = foremost(lower, worst)[: self._config.trajectories]
        return self._entries(looked_at, mistakes, "warning", revision, known)[: self._config.warnings]

    def _entries(
        self, looked_at: Sequence[Episode], draw: Draw, zone: str, revision: int, known: Set[str]
    ) -> list[Entry]:
        """New entries in order of their first occurrence; a lesson of several episodes is one entry."""
        candidates: dict[str, _Candidate] = {}
        for episode in looked_at:
            for lesson in draw(episode, revision):
                entry = replace(rescoped(lesson, self._key(episode.task)), zone=zone)
                candidates.setdefault(entry.id, _Candidate(entry, {})).episodes[episode.id] = episode
        return [candidate.written() for candidate in candidates.values() if candidate.entry.id not in known]


def discoveries(episode: Episode, revision: int) -> list[Entry]:
    """Lessons of an episode, without that of the turn that ended a failure."""
    fatal = len(episode.turns) - 1 if was_ended(episode) else None
    return [lesson.entry for lesson in lessons(episode, revision) if lesson.turn != fatal]


def mistakes(episode: Episode, revision: int) -> list[Entry]:
    """The lesson of the turn that ended a failure; none for a failure that ran out of turns."""
    if not was_ended(episode):
        return []
    return [lesson.entry for lesson in lessons(episode, revision) if lesson.turn == len(episode.turns) - 1]


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: Entry
    episodes: dict[str, Episode]

    def written(self) -> Entry:
        tasks = [episode.task for episode in self.episodes.values()]
        return replace(self.entry, sources=tuple(self.episodes), level=level(tasks))


def writer(config: QuoteExtremesConfig, key: KeyFunction) -> ExtremesWriter:
    """The extremes of the rewards with the settings of a configuration."""
    return ExtremesWriter(config, key)
