"""Lessons of a model from contrasts between attempts at one task (CoEvo-RL section 3.4)."""

from collections.abc import Iterator, Sequence

from coevo.configs.bank.writer import ModelContrastConfig
from coevo.memory.evidence.contrasts import clusters
from coevo.memory.writers.model.answer_lessons import LessonCandidate, entry, joined, lessons, writer_answers
from coevo.memory.writers.model.answers import PromptedQuestion, answers, counts, rejects_of
from coevo.memory.writers.model.prompts import (
    FAILURE,
    FAILURES,
    KNOWN,
    LESSONS,
    PAIR,
    SUCCESS,
    SUCCESSES,
    prompted,
)
from coevo.memory.writers.writer import Evidence, Proposal, room_of, worth
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction


class ModelContrast:
    """Writer that asks one question per contrast."""

    def __init__(self, config: ModelContrastConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """At most ``config.candidates`` entries from at most ``config.buffer`` episodes.

        Contrastive pairs come first, then the successes of a task without a failure, then the failures of one without
        a success. The model sees the present bank as well.
        """
        found = answers(evidence.ask, [self._prompted(cluster, evidence) for cluster in self._chosen(evidence)])
        read = [
            LessonCandidate(answer, lesson, entry(lesson, self._key(lesson.attempt.episode.task), evidence.revision))
            for answer in found
            for lesson in lessons(answer, self._config.lessons)
        ]
        entries = joined(read)
        fresh = [each for each in entries.values() if each.id not in evidence.library.row_of]
        candidates = tuple(fresh[: self._config.candidates])
        known = {"contrast_lessons": float(len(entries)), "contrast_known": float(len(entries) - len(fresh))}
        return Proposal(
            candidates,
            worth(candidates, evidence.episodes),
            counts=counts(found) | known,
            rejects=rejects_of(found),
            writer_answers=writer_answers(found, read),
        )

    def _chosen(self, evidence: Evidence) -> Iterator[Sequence[Episode]]:
        """As many clusters as may give a candidate, from a buffer of episodes.

        The last one may be a part of its task's episodes; a contrastive pair is not divided.
        """
        seen: set[str] = set()
        for number, cluster in enumerate(clusters(evidence.episodes)):
            left = self._config.buffer - len(seen)
            new = [episode for episode in cluster if episode.id not in seen]
            if number == self._config.candidates or left < (len(new) if _is_pair(cluster) else 1):
                return
            seen |= {episode.id for episode in new[:left]}
            yield cluster if _is_pair(cluster) else new[:left]

    def _prompted(self, cluster: Sequence[Episode], evidence: Evidence) -> PromptedQuestion:
        notes = self._notes(cluster, evidence) if self._config.notes else []
        told = [_asked(cluster), *([KNOWN] if notes else []), LESSONS.format(most=self._config.lessons)]
        room = room_of(evidence.ask, self._config.question_tokens)
        return prompted("contrast", "\n".join(told), cluster, room, notes)

    def _notes(self, cluster: Sequence[Episode], evidence: Evidence) -> list[Entry]:
        """The present bank, entries of the cluster's pool first."""
        pools = {self._key(episode.task) for episode in cluster}
        return sorted(evidence.library.entries, key=lambda entry: entry.scope not in pools)


def _is_pair(cluster: Sequence[Episode]) -> bool:
    return len({episode.success for episode in cluster}) == 2


def _asked(cluster: Sequence[Episode]) -> str:
    if _is_pair(cluster):
        return PAIR
    one, more = (SUCCESS, SUCCESSES) if cluster[0].success else (FAILURE, FAILURES)
    return one if len(cluster) == 1 else more


def writer(config: ModelContrastConfig, key: KeyFunction) -> ModelContrast:
    """The contrast of attempts by a model, with the settings of a configuration."""
    return ModelContrast(config, key)
