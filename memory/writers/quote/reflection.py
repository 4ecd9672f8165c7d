"""Lessons from a reflection on every episode (RetroAgent section 3.1), by the built-in reflector."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from coevo.configs.bank.writer import QuoteReflectionConfig
from coevo.memory.evidence.contrasts import lessons, pivot
from coevo.memory.evidence.references import References, reference_of
from coevo.memory.evidence.reflections import Reflected, Reflection, Subtask, figures, parse, write
from coevo.memory.text import clean, content_words, words
from coevo.memory.writers.writer import Ask, Evidence, Proposal, nobody
from coevo.records.entry import Entry, also_from, entry_id
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

Reflect = Callable[[Episode, Episode | None, int], str]
"""``reflect(episode, reference, most)``: text of at most ``most`` lessons (``coevo.memory.evidence.reflections``)."""
FINEST = 100
"""Most subtasks into which progress is divided."""


def reflect(episode: Episode, reference: Episode | None, most: int) -> str:
    """Write a reflection in the form of ``coevo.memory.evidence.reflections``.

    Args:
        episode: episode to reflect on.
        reference: episode with the other outcome for comparison (pairwise induction); None for single induction.
        most: most lessons.
    """
    quotes = dict.fromkeys(lesson.strategy for lesson in _induced(episode, reference))
    return write(Reflection(_subtasks(episode), episode.success, tuple(quotes)[:most]))


def _subtasks(episode: Episode) -> tuple[Subtask, ...]:
    """Subtasks that express the environment's progress; without progress, the task is the only subtask."""
    if episode.progress is None:
        return (Subtask("the task", episode.success),)
    share = Fraction(episode.progress).limit_denominator(FINEST)
    parts = range(1, share.denominator + 1)
    return tuple(Subtask(f"milestone {part} of {share.denominator}", part <= share.numerator) for part in parts)


def _induced(episode: Episode, reference: Episode | None) -> Sequence[Entry]:
    own = lessons(episode, episode.revision)
    quoted = [lesson.entry for lesson in own]
    if reference is None:
        return _single(quoted, episode.success)
    if episode.success:
        start = pivot(episode, reference)
        return [lesson.entry for lesson in own if lesson.turn >= start] or quoted
    return _corrected(_single(quoted, success=False), _right(reference, episode))


def _single(quoted: Sequence[Entry], success: bool) -> Sequence[Entry]:
    """Lessons in order of value: as they came for a success; last first, as the likely error, for a failure."""
    return quoted if success else [*quoted[-1:], *quoted[:-1]]


def _right(success: Episode, failure: Episode) -> list[Entry]:
    """Lessons of a success from where a failure diverged from it, as far as they concern the failure's task."""
    start, task = pivot(success, failure), failure.task
    known = {*words(task.scope), *words(task.instruction)}
    told = (lesson.entry for lesson in lessons(success, success.revision) if lesson.turn >= start)
    return [entry for entry in told if known.issuperset(entry.keywords.split())]


def _corrected(failed: Sequence[Entry], right: Sequence[Entry]) -> Sequence[Entry]:
    """The right choices, then the failure's lessons about anything else."""
    settled = {entry.keywords for entry in right}
    return [*right, *(entry for entry in failed if entry.keywords not in settled)]


class QuoteReflection:
    """One reflection per episode; its lessons become entries for tasks like the episode's."""

    def __init__(self, config: QuoteReflectionConfig, key: KeyFunction, reflect: Reflect = reflect) -> None:
        self._config = config
        self._key = key
        self._reflect = reflect

    def reflect(self, episodes: Sequence[Episode], references: References, ask: Ask = nobody) -> list[Reflected]:
        """Reflect on each episode, in order; nobody is asked."""
        return [self._reflected(episode, references) for episode in episodes]

    def write(self, evidence: Evidence) -> Proposal:
        """All lessons that the library lacks, in the order of the episodes.

        A lesson of several episodes is one candidate with all of them as sources.
        """
        wanted = [episode for episode in evidence.episodes if self._config.outcomes == "all" or not episode.success]
        told = self.reflect(wanted, evidence.references)
        drafts: dict[str, Entry] = {}
        for each in told:
            for lesson in each.reflection.lessons:
                entry = self._entry(lesson, each, evidence.revision)
                drafts[entry.id] = also_from(drafts.get(entry.id, entry), entry.sources)
        fresh = [entry for entry in drafts.values() if entry.id not in evidence.library.row_of]
        return Proposal(tuple(fresh), counts=figures(told))

    def _reflected(self, episode: Episode, references: References) -> Reflected:
        pairwise = self._config.induction == "pairwise"
        reference = reference_of(episode, references.of(self._key(episode.task))) if pairwise else None
        return Reflected(episode, reference, parse(self._reflect(episode, reference, self._config.lessons)))

    def _entry(self, lesson: str, told: Reflected, revision: int) -> Entry:
        task, scope = told.episode.task, self._key(told.episode.task)
        example, sources = _grounded(lesson, told)
        named, said = words(task.scope), words(lesson)
        concerns = [word for word in content_words(task.instruction) if word in said and word not in named]
        return Entry(
            id=entry_id(scope, lesson),
            strategy=lesson,
            condition=clean(task.instruction),
            example=example,
            keywords=clean(" ".join([*named, *concerns] or said)),
            scope=scope,
            split=task.split,
            sources=sources,
            created=revision,
            edited=revision,
        )


def _grounded(lesson: str, told: Reflected) -> tuple[str, tuple[str, ...]]:
    """The action whose feedback a lesson quotes (empty without one), and the episodes that taught it."""
    episode, reference = told.episode, told.reference
    if action := _quoted(lesson, episode):
        return action, (episode.id,)
    if reference is not None and (action := _quoted(lesson, reference)):
        return action, (episode.id, reference.id)
    return "", (episode.id,)


def _quoted(lesson: str, episode: Episode) -> str:
    """The last action of an episode whose feedback the lesson contains."""
    said = ((clean(turn.action), clean(turn.feedback)) for turn in reversed(episode.turns))
    return next((action for action, feedback in said if feedback and f" {feedback} " in f" {lesson} "), "")


def writer(config: QuoteReflectionConfig, key: KeyFunction) -> QuoteReflection:
    """Reflections with the settings of a configuration."""
    return QuoteReflection(config, key)
