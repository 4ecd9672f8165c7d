"""The built-in writer: candidates from the contrast of trajectories, without a model (CoEvo-RL section 3.4)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coevo.configs.bank.writer import QuoteContrastConfig
from coevo.memory.evidence.contrasts import Contrast, contrasts
from coevo.memory.writers.writer import Evidence, Proposal, worth
from coevo.records.entry import Entry, rescoped
from coevo.records.task import KeyFunction


class ContrastWriter:
    """Writer that quotes feedback; reads only the text of episodes and the key of their tasks."""

    def __init__(self, config: QuoteContrastConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """At most ``config.candidates`` entries from at most ``config.buffer`` episodes.

        Contrastive pairs come first, then success clusters, then failure clusters. A lesson of several episodes is one
        candidate with all of them as sources. Entries of the library are not proposed again.
        """
        by_id: dict[str, Entry] = {}
        for contrast in self._buffered(contrasts(evidence.episodes, evidence.revision)):
            for lesson in contrast.lessons:
                entry = rescoped(lesson, self._key(contrast.episodes[0].task))
                by_id[entry.id] = _join(by_id.get(entry.id, entry), entry)
        fresh = [entry for entry in by_id.values() if entry.id not in evidence.library.row_of]
        candidates = tuple(fresh[: self._config.candidates])
        counts = {"contrast_lessons": float(len(by_id)), "contrast_known": float(len(by_id) - len(fresh))}
        return Proposal(candidates, worth(candidates, evidence.episodes), counts=counts)

    def _buffered(self, ranked: Iterable[Contrast]) -> Iterator[Contrast]:
        seen: set[str] = set()
        for contrast in ranked:
            seen |= {episode.id for episode in contrast.episodes}
            if len(seen) > self._config.buffer:
                return
            yield contrast


def _join(candidate: Entry, lesson: Entry) -> Entry:
    return replace(candidate, sources=tuple(dict.fromkeys([*candidate.sources, *lesson.sources])))


def writer(config: QuoteContrastConfig, key: KeyFunction) -> ContrastWriter:
    """The contrast of trajectories with the settings of a configuration."""
    return ContrastWriter(config, key)
