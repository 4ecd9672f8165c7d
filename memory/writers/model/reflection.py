"""Reflections of a model on every episode: potential, prediction of success, and lessons (RetroAgent section 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coevo.configs.bank.writer import ModelReflectionConfig
from coevo.memory.evidence.references import References, reference_of
from coevo.memory.evidence.reflections import MALFORMED, Reflected, Reflection, Subtask, figures
from coevo.memory.text import clean
from coevo.memory.writers.model import words
from coevo.memory.writers.model.answer_lessons import Lesson, LessonCandidate, entry, joined, lessons, writer_answers
from coevo.memory.writers.model.answers import AnswerReader, PromptedQuestion, answers, counts, rejects_of
from coevo.memory.writers.model.prompts import LESSONS, REFERENCE, REFLECT, prompted
from coevo.memory.writers.writer import Ask, Evidence, Proposal, room_of
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction


class ModelReflection:
    """Writer that asks one question per episode."""

    def __init__(self, config: ModelReflectionConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def reflect(self, episodes: Sequence[Episode], references: References, ask: Ask) -> list[Reflected]:
        """Reflect on each episode, in order; an answer that cannot be read is malformed."""
        return [told for told, _ in self._told(self._answers(episodes, references, ask), references)]

    def write(self, evidence: Evidence) -> Proposal:
        """All lessons that the library lacks, in the order of the episodes."""
        wanted = [episode for episode in evidence.episodes if self._config.outcomes == "all" or not episode.success]
        found = self._answers(wanted, evidence.references, evidence.ask)
        told = self._told(found, evidence.references)
        candidates = [
            LessonCandidate(answer, lesson, self._entry(lesson, each.episode, evidence.revision))
            for answer, (each, taught) in zip(found, told, strict=True)
            for lesson in taught
        ]
        fresh = tuple(each for each in joined(candidates).values() if each.id not in evidence.library.row_of)
        measured, learned = counts(found) | figures([each for each, _ in told]), writer_answers(found, candidates)
        return Proposal(fresh, counts=measured, rejects=rejects_of(found), writer_answers=learned)

    def _entry(self, lesson: Lesson, episode: Episode, revision: int) -> Entry:
        """Entry of a lesson; the reflected episode is a source also where the reference shows the step.

        A candidate is judged on the tasks of its sources that were played since the last firing, and a reference is an
        earlier episode. The keywords are the instruction (x of RetroAgent section 3.3), by which similar tasks find it.
        """
        made = entry(lesson, self._key(episode.task), revision)
        sources = tuple(dict.fromkeys((episode.id, *made.sources)))
        return replace(made, keywords=clean(episode.task.instruction), sources=sources)

    def _answers(self, episodes: Sequence[Episode], references: References, ask: Ask) -> list[AnswerReader]:
        return answers(
            ask, [self._prompted(episode, self._reference(episode, references), ask) for episode in episodes]
        )

    def _told(self, found: Sequence[AnswerReader], references: References) -> list[tuple[Reflected, list[Lesson]]]:
        """Reflection of each answer, with the lessons that passed the checks."""
        told = []
        for answer in found:
            episode = answer.prompted.attempts[0].episode
            taught = lessons(answer, self._config.lessons)
            reflection = _reflection(answer.fields, tuple(lesson.text for lesson in taught))
            reference = self._reference(episode, references)
            told.append((Reflected(episode, reference, reflection, answer.reply.drawn, not answer.reply.fault), taught))
        return told

    def _reference(self, episode: Episode, references: References) -> Episode | None:
        """The other attempt of a pairwise induction; its outcome would give the episode's own away."""
        if self._config.induction == "single" or not self._config.reveal_outcome:
            return None
        return reference_of(episode, references.of(self._key(episode.task)))

    def _prompted(self, episode: Episode, reference: Episode | None, ask: Ask) -> PromptedQuestion:
        both = [episode] if reference is None else [episode, reference]
        room, verdict = room_of(ask, self._config.question_tokens), self._config.reveal_outcome
        if self._config.form == "words":
            only = words.attempt(episode, room.tokens - room.size(words.ASKED), verdict, room.size)
            return PromptedQuestion(words.question("reflection", only), (only,))
        said = f"{REFLECT}{'' if reference is None else REFERENCE}\n{LESSONS.format(most=self._config.lessons)}"
        return prompted("reflection", said, both, room, verdict=verdict)


def _reflection(fields: Mapping[str, object], taught: tuple[str, ...]) -> Reflection:
    """Potential and prediction of an answer; malformed where either cannot be read."""
    parts, success = fields.get("subtasks"), fields.get("success")
    if not isinstance(parts, list) or not parts or not isinstance(success, bool):
        return MALFORMED
    found = [
        Subtask(clean(part["subtask"]), part["done"])
        for part in parts
        if isinstance(part, Mapping) and isinstance(part.get("subtask"), str) and isinstance(part.get("done"), bool)
    ]
    return Reflection(tuple(found), success, taught) if len(found) == len(parts) else MALFORMED


def writer(config: ModelReflectionConfig, key: KeyFunction) -> ModelReflection:
    """Reflections by a model, with the settings of a configuration."""
    return ModelReflection(config, key)
