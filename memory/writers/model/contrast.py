"""Lessons of a model from contrasts between attempts at one task (CoEvo-RL section 3.4)."""

from collections.abc import Iterator

from coevo.configs.bank.writer import ModelContrastConfig
from coevo.memory.evidence.contrasts import Contrast, contrasts
from coevo.memory.writers.base import Evidence, Proposal, worth
from coevo.memory.writers.model.answers import Posed, answers, counts, rejects_of
from coevo.memory.writers.model.lessons import Draft, authored, entry, joined, lessons
from coevo.memory.writers.model.prompts import FAILURE, LESSONS, PAIR, SUCCESS, question
from coevo.memory.writers.model.transcript import shown
from coevo.records.task import Key


class ModelContrast:
    """Writer that asks one question per contrast."""

    def __init__(self, config: ModelContrastConfig, key: Key) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """At most ``config.candidates`` entries from at most ``config.buffer`` episodes.

        Contrastive pairs come first, then successes of tasks without a failure, then failures without a success.
        """
        posed = [self._posed(contrast) for contrast in self._chosen(evidence)]
        found = answers(evidence.ask, posed)
        drafts = [
            Draft(answer, lesson, entry(lesson, self._key(lesson.attempt.episode.task), evidence.revision))
            for answer in found
            for lesson in lessons(answer, self._config.lessons)
        ]
        entries = joined(drafts)
        fresh = [each for each in entries.values() if each.id not in evidence.library.row_of]
        candidates = tuple(fresh[: self._config.candidates])
        known = {"contrast_lessons": float(len(entries)), "contrast_known": float(len(entries) - len(fresh))}
        return Proposal(
            candidates,
            worth(candidates, evidence.episodes),
            counts=counts(found) | known,
            rejects=rejects_of(found),
            authored=authored(found, drafts),
        )

    def _chosen(self, evidence: Evidence) -> Iterator[Contrast]:
        """As many contrasts as may give a candidate, from a buffer of episodes."""
        seen: set[str] = set()
        for number, contrast in enumerate(contrasts(evidence.episodes, evidence.revision)):
            seen |= {episode.id for episode in contrast.episodes}
            if len(seen) > self._config.buffer or number == self._config.candidates:
                return
            yield contrast

    def _posed(self, contrast: Contrast) -> Posed:
        attempts = shown(contrast.episodes, self._config.transcript)
        asked = PAIR if len(attempts) == 2 else SUCCESS if contrast.episodes[0].success else FAILURE
        said = f"{asked}\n{LESSONS.format(most=self._config.lessons)}"
        return Posed(question("contrast", said, attempts), attempts)


def writer(config: ModelContrastConfig, key: Key) -> ModelContrast:
    """The contrast of attempts by a model, with the settings of a configuration."""
    return ModelContrast(config, key)
