"""Skills of a model, from failures of kinds of tasks with low success (as in SkillRL)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from coevo.configs.bank.writer import ModelSkillsConfig
from coevo.memory.evidence.reward_extremes import foremost, worst
from coevo.memory.library import Library
from coevo.memory.writers.model.answer_lessons import Lesson, LessonCandidate, entry, joined, lessons, writer_answers
from coevo.memory.writers.model.answers import AnswerReader, PromptedQuestion, answers, counts, rejects_of
from coevo.memory.writers.model.prompts import COUNT, LESSONS, SKILLS, prompted, within
from coevo.memory.writers.writer import Evidence, Proposal, room_of
from coevo.records.entry import wording
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

KNOWN = 40
"""Most known skills that a question names."""


class ModelSkills:
    """Writer that asks one question per kind that mostly fails."""

    def __init__(self, config: ModelSkillsConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """For each kind with too low success, new skills from some of its failures beside one of its successes."""
        failing = failing_kinds(evidence.episodes, self._key, self._config.below)
        found = answers(evidence.ask, [self._prompted(kind, played, evidence) for kind, played in failing.items()])
        candidates = self._candidates(found, evidence.revision)
        held = {(wording(each.strategy), each.scope) for each in evidence.library.entries}
        skills = [(wording(each.strategy), each) for each in joined(candidates).values()]
        fresh = tuple(each for text, each in skills if not held & {(text, each.scope), (text, "")})
        sizes = {"failing_kinds": float(len(failing)), "general_skills": float(sum(not each.scope for each in fresh))}
        learned = writer_answers(found, candidates)
        return Proposal(fresh, counts=counts(found) | sizes, rejects=rejects_of(found), writer_answers=learned)

    def _candidates(self, found: Iterable[AnswerReader], revision: int) -> list[LessonCandidate]:
        return [
            LessonCandidate(answer, lesson, entry(lesson, self._scope(lesson), revision))
            for answer in found
            for lesson in lessons(answer, self._config.skills)
        ]

    def _scope(self, lesson: Lesson) -> str:
        return "" if lesson.item.get("general") is True else self._key(lesson.attempt.episode.task)

    def _prompted(self, kind: str, played: Sequence[Episode], evidence: Evidence) -> PromptedQuestion:
        failures = foremost([episode for episode in played if not episode.success], worst)[: self._config.failures]
        successes = [episode for episode in played if episode.success][:1]
        note = f"; the last attempt, number {COUNT}, succeeded" if successes else ""
        room, texts = room_of(evidence.ask, self._config.question_tokens), known(kind, evidence.library)
        some = min(KNOWN, within([room.size(text) for text in texts], room.tokens))
        said = SKILLS.format(success=note, known=", ".join(texts[:some]) or "none")
        said = f"{said}\n{LESSONS.format(most=self._config.skills)}"
        return replace(prompted("skills", said, [*failures, *successes], room), notes_left_out=len(texts) - some)


def failing_kinds(episodes: Iterable[Episode], key: KeyFunction, below: float) -> dict[str, list[Episode]]:
    """Episodes of the kinds whose success is below a bound, in order of first appearance."""
    kinds: dict[str, list[Episode]] = {}
    for episode in episodes:
        kinds.setdefault(key(episode.task), []).append(episode)
    rates: Mapping[str, float] = {
        kind: sum(episode.success for episode in played) / len(played) for kind, played in kinds.items()
    }
    return {kind: played for kind, played in kinds.items() if rates[kind] < below}


def known(kind: str, library: Library) -> list[str]:
    """Skills that the bank has for a kind and for all kinds, quoted, the latest edits first."""
    texts = (entry.strategy for entry in library.entries if entry.scope in (kind, ""))
    return [json.dumps(text, ensure_ascii=False) for text in texts]


def writer(config: ModelSkillsConfig, key: KeyFunction) -> ModelSkills:
    """Skills by a model, with the settings of a configuration."""
    return ModelSkills(config, key)
