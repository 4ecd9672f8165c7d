"""Strategies and warnings of a model, from the attempts that earned most and least (SLEA-RL section 3.4)."""

from collections.abc import Iterable, Sequence

from coevo.configs.bank.writer import ModelExtremesConfig
from coevo.memory.evidence.reward_extremes import best, foremost, partition, worst
from coevo.memory.writers.model.answer_lessons import Lesson, LessonCandidate, entry, joined, lessons, writer_answers
from coevo.memory.writers.model.answers import AnswerReader, PromptedQuestion, answers, counts, rejects_of
from coevo.memory.writers.model.prompts import LESSONS, STRATEGIES, WARNINGS, prompted
from coevo.memory.writers.writer import Ask, Evidence, Proposal, room_of, worth
from coevo.records.entry import LEVELS
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

ASKED = {"strategies": STRATEGIES, "warnings": WARNINGS}
ZONES = {"strategies": "strategy", "warnings": "warning"}


class ModelExtremes:
    """Writer that asks for strategies and for warnings, one question each."""

    def __init__(self, config: ModelExtremesConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key
        self._most = {"strategies": config.strategies, "warnings": config.warnings}

    def write(self, evidence: Evidence) -> Proposal:
        """Strategies first, then warnings; entries of the library are not proposed again."""
        upper, lower = partition(evidence.episodes) if evidence.episodes else ([], [])
        sides = {"strategies": foremost(upper, best), "warnings": foremost(lower, worst)}
        asked = [
            self._prompted(purpose, side[: self._config.trajectories], evidence.ask)
            for purpose, side in sides.items()
            if side and self._most[purpose]
        ]
        found = answers(evidence.ask, asked)
        candidates = list(self._candidates(found, evidence.revision))
        fresh = tuple(each for each in joined(candidates).values() if each.id not in evidence.library.row_of)
        sizes = {"upper": float(len(upper)), "lower": float(len(lower))}
        return Proposal(
            fresh,
            worth(fresh, evidence.episodes),
            counts=counts(found) | sizes,
            rejects=rejects_of(found),
            writer_answers=writer_answers(found, candidates),
        )

    def _prompted(self, purpose: str, episodes: Sequence[Episode], ask: Ask) -> PromptedQuestion:
        said = f"{ASKED[purpose]}\n{LESSONS.format(most=self._most[purpose])}"
        return prompted(purpose, said, episodes, room_of(ask, self._config.question_tokens))

    def _candidates(self, found: Iterable[AnswerReader], revision: int) -> Iterable[LessonCandidate]:
        for answer in found:
            purpose = answer.prompted.question.purpose
            for lesson in lessons(answer, self._most[purpose]):
                pool = self._key(lesson.attempt.episode.task)
                yield LessonCandidate(answer, lesson, entry(lesson, pool, revision, ZONES[purpose], _level(lesson)))


def _level(lesson: Lesson) -> str:
    """Level that the model gives a lesson; the most special one if it gives none of them."""
    said = lesson.item.get("level")
    return said if said in LEVELS else LEVELS[-1]


def writer(config: ModelExtremesConfig, key: KeyFunction) -> ModelExtremes:
    """Strategies and warnings by a model, with the settings of a configuration."""
    return ModelExtremes(config, key)
