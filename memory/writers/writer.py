"""Writers: from the episodes since its last firing, and what the bank holds, a writer proposes changes."""

from abc import abstractmethod
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from coevo.configs.bank.writer import AnyWriterConfig, OutsideWriterConfig
from coevo.configs.outside_part import Part, build
from coevo.memory.evidence.references import References
from coevo.memory.evidence.reflections import Reflected
from coevo.memory.library import Library
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import BY_SCOPE, KeyFunction
from coevo.records.writing import Drawn, Question, QuestionRoom, Reply
from coevo.utilities.errors import CoevoError
from coevo.utilities.part_registry import Registry

Ask = Callable[[Sequence[Question]], list[Reply]]
"""Function that returns one reply per question, in order."""


@dataclass(frozen=True, slots=True)
class AskFunction:
    """Function that asks a writer model, with the room that the writer model has for a question.

    Attributes:
        put: returns one reply per question, in order.
        room: returns the room; a model is loaded for that, so it is called when there is something to ask.
    """

    put: Ask
    room: Callable[[], QuestionRoom]

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, in order."""
        return self.put(questions)


def room_of(ask: Ask, most: int) -> QuestionRoom:
    """Room for a question of at most so many tokens; they are estimated where nothing is known of the writer model."""
    if not isinstance(ask, AskFunction):
        return QuestionRoom(most)
    room = ask.room()
    return QuestionRoom(min(most, room.tokens), room.size)


def nobody(questions: Sequence[Question]) -> list[Reply]:
    """Answer nothing: for writers that ask no model."""
    raise CoevoError(f"a writer asks {len(questions)} questions, but it has no writer model: set bank.writer.model")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Input of a writer.

    Attributes:
        episodes: training episodes since the last firing, in the order (iteration, task, replica).
        library: the active entries with their counters.
        references: earlier episodes by key; those of ``episodes`` are not yet among them.
        revision: number of the revision in the making.
        ask: puts questions to the writer model of ``bank.writer.model``; rules do not use it.
    """

    episodes: Sequence[Episode]
    library: Library
    references: References
    revision: int
    ask: Ask = nobody


@dataclass(frozen=True, slots=True)
class Edit:
    """One operation that an editor proposes (JERP Eq. 26), not yet read.

    Attributes:
        scope: key of the pool.
        line: in the syntax of ``coevo.memory.edit_operations``, if the editor keeps to it.
        sources: ids of the episodes that it was drawn from.
    """

    scope: str
    line: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reject:
    """A part of a model's answer that was refused; it is kept for audit.

    Attributes:
        purpose: prompt that was answered.
        episodes: ids of the episodes that it showed.
        reason: key of ``coevo.memory.writers.model.answer_lessons.REASONS``.
        text: the part, cut to a bounded length.
    """

    purpose: str
    episodes: tuple[str, ...]
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class WriterAnswer:
    """An answer of the run's own policy.

    Attributes:
        drawn: its tokens.
        lessons: text of each item as the answer has it, and the id of its entry, in order; the id of an item that was
            refused is empty.
    """

    drawn: Drawn
    lessons: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Output of a writer.

    Attributes:
        entries: candidates, best first.
        worth: initial worth of candidates by id, if the writer knows it (z of SLEA-RL section 3.1).
        edits: operations on pools, in the order of execution; only editors propose any.
        counts: counts for the metrics ``bank/writer/<name>``.
        rejects: parts of a model's answers that were refused.
        writer_answers: answers from which the policy may learn to write.
    """

    entries: tuple[Entry, ...] = ()
    worth: dict[str, float] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    counts: dict[str, float] = field(default_factory=dict)
    rejects: tuple[Reject, ...] = ()
    writer_answers: tuple[WriterAnswer, ...] = ()

    def without(self, barred: Set[str]) -> Self:
        """The same without candidates of these ids."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.id not in barred))


class Writer(Protocol):
    """A writer. It changes nothing itself, and equal evidence gives equal proposals."""

    def write(self, evidence: Evidence) -> Proposal:
        """Propose changes of the bank."""
        ...


@runtime_checkable
class Reflector(Protocol):
    """A writer whose reflections a reward can read (RetroAgent section 3.2)."""

    def reflect(self, episodes: Sequence[Episode], references: References, ask: Ask) -> list[Reflected]:
        """Reflect on each episode, in order."""
        ...


class WriterPart(Part):
    """A writer of your own for ``bank.writer``: candidates from the episodes since its last firing.

    It changes nothing itself, and equal evidence gives equal proposals: an object keeps nothing from one firing to the
    next. A class with the method ``reflect`` of ``Reflector`` also serves rewards that read reflections.

    Attributes:
        scores: True if each proposal states the worth of its candidates, which ``bank.admission.type=score`` needs.
        edits: True if it proposes operations, for an admission that carries them out.
        config: its options, checked.
        key: function from a task to the key of its pool, which is the ``scope`` of an entry (``bank.key``).
    """

    setting: ClassVar[str] = OutsideWriterConfig.setting
    scores: ClassVar[bool] = False
    edits: ClassVar[bool] = False

    def __init__(self, config: Any, key: KeyFunction = BY_SCOPE) -> None:
        super().__init__(config)
        self.key = key

    @abstractmethod
    def write(self, evidence: Evidence) -> Proposal:
        """Propose changes of the bank. ``evidence.ask`` asks the language model of ``bank.writer.model``."""


def worth(entries: Sequence[Entry], episodes: Sequence[Episode]) -> dict[str, float]:
    """Mean reward of the source episodes of each entry, by id (z of SLEA-RL section 3.1)."""
    rewards = {episode.id: episode.reward for episode in episodes}
    return {entry.id: fmean(rewards[source] for source in entry.sources) for entry in entries}


KINDS = ("contrast", "extremes", "reflection", "skills", "editor")
"""Kinds of writers; of each there is a rule that quotes feedback, and a model."""

WRITERS = Registry[Callable[[AnyWriterConfig, KeyFunction], Writer]](
    "bank.writer.type",
    {
        **{f"quote-{kind}": f"coevo.memory.writers.quote.{kind}:writer" for kind in KINDS},
        **{f"model-{kind}": f"coevo.memory.writers.model.{kind}:writer" for kind in KINDS},
    },
)


def writer_of(config: AnyWriterConfig, key: KeyFunction) -> Writer:
    """The writer of a configuration; ``key`` gives the pool that a task belongs to."""
    if isinstance(config, OutsideWriterConfig):
        part: WriterPart = build(config, key)
        return part
    return WRITERS.load(config.type)(config, key)
