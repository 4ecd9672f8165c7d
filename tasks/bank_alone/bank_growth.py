"""Growth of a bank that stands alone: lessons are written from recorded trajectories, and judged by replays.

They are written by a function of the user, or by a language model at an endpoint. Each scope is written by itself:
neither a question nor a function ever sees two of them. Admission and measurement replay tasks by another function of
the user, each of whose rewards is checked. A bank imports this module when it grows: readers need neither.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from coevo.configs.bank.admission_config import ReplayAdmissionConfig
from coevo.configs.bank.writer import ModelContrastConfig, ModelExtremesConfig, ModelReflectionConfig, ModelSkillsConfig
from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.configs.base import Config
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.evidence import upper_bound
from coevo.memory.admission.replay import PairedRewards, ReplayAdmission, measured
from coevo.memory.bank.change import Judged
from coevo.memory.bank_state import Measurements
from coevo.memory.evidence.references import References
from coevo.memory.library import AdmissionState, Library
from coevo.memory.validate import MAX_SOURCES, shortened, vet
from coevo.memory.writers.writer import Ask, AskFunction, Evidence, Proposal, Reject, writer_of
from coevo.models.writer_models.writer_model import WriterModel
from coevo.records.entry import Entry, entered, entry_id, rescoped
from coevo.records.task import BY_SCOPE
from coevo.records.writing import Question, Reply
from coevo.tasks.bank_alone.bank_reader import BankContent, Retriever
from coevo.tasks.bank_alone.chat_trajectory import ChatTrajectory, episode_of
from coevo.tasks.bank_alone.new_lesson import LessonText, read_lessons
from coevo.tasks.bank_alone.scoped_index import ScopedIndex
from coevo.tasks.writing.artifact import KeptWriting
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.tasks.writing.journal import Journal
from coevo.utilities.errors import CoevoError

WriterFunction = Callable[[Sequence[ChatTrajectory], Retriever], Sequence[LessonText]]
"""``writer(trajectories, memory)``: lessons from the trajectories of one scope; ``memory`` has what it can retrieve."""
LessonWriter = WriterFunction | Mapping[str, Any]
"""A function, or the settings of a writer that asks a model, as a recipe has them below ``bank.writer``."""

JOURNAL = ".answers.jsonl"
"""File of the answers of a writer model that no revision has used yet: a killed ``write`` does not ask again."""

AnyModelWriter = ModelContrastConfig | ModelExtremesConfig | ModelReflectionConfig | ModelSkillsConfig
"""Settings of a writer that asks a model for lessons."""


class _WriterChoice(Config):
    writer: Annotated[AnyModelWriter, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class WriterReport:
    """Outcome of a call of a writer.

    Attributes:
        candidates: ids of the new candidates.
        read: number of trajectories that do not wait any more.
        unanswered: reasons why questions have no answer; their trajectories still wait.
        rejects: parts of answers that were refused, with the reason.
    """

    candidates: tuple[str, ...] = ()
    read: int = 0
    unanswered: tuple[str, ...] = ()
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Lessons of a writer, not yet in the bank.

    Attributes:
        entries: candidates, each in the scope of its trajectories.
        read: ids of the trajectories that need no other writer.
        unanswered: as in ``WriterReport``.
        rejects: likewise.
    """

    entries: tuple[Entry, ...]
    read: frozenset[str]
    unanswered: tuple[str, ...] = ()
    rejects: tuple[Reject, ...] = ()


def written(
    writer: LessonWriter,
    waiting: Sequence[ChatTrajectory],
    now: BankContent,
    directory: Path,
    warn: Callable[[str], None],
) -> Written:
    """Lessons from trajectories.

    Args:
        writer: function, or settings.
        waiting: trajectories that no writer has read.
        now: the newest revision.
        directory: of the bank.
        warn: gets a line about what an endpoint does not do as it is asked.

    Raises:
        CoevoError: settings, a lesson or the endpoint are not acceptable, or no question was answered.
    """
    scopes: dict[str, list[ChatTrajectory]] = {}
    for trajectory in waiting:
        scopes.setdefault(str(trajectory.scope), []).append(trajectory)
    if callable(writer):
        entries = [entry for scope, group in scopes.items() for entry in _by_function(writer, group, scope, now)]
        return Written(tuple(entries), frozenset(each.id for each in waiting))
    config = _config(writer)
    with _asking(config, now.revision.number + 1, directory, warn) as writing:
        questions = _Questions(partial(writing.ask, now.revision.number + 1))
        made = [_by_model(config, AskFunction(questions, lambda: writing.room), group, scope, now)
                for scope, group in scopes.items()]  # fmt: skip
    if questions.faults and not questions.answered:
        raise CoevoError(f"no question of the writer was answered: {next(iter(questions.faults.values()))}")
    read = frozenset(each.id for each in waiting) - questions.faults.keys()
    rejects = tuple(reject for _, refused in made for reject in refused)
    faults = tuple(dict.fromkeys(questions.faults.values()))
    return Written(tuple(entry for entries, _ in made for entry in entries), read, faults, rejects)


class _Questions:
    """An ``Ask`` that notes which trajectories had no answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.faults: dict[str, str] = {}
        self.answered = False

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        replies = self._ask(questions)
        for question, reply in zip(questions, replies, strict=True):
            self.answered = self.answered or not reply.fault
            if reply.fault:
                self.faults |= dict.fromkeys(question.episodes, reply.fault)
        return replies


def _config(settings: object) -> AnyModelWriter:
    """Settings of a writer, checked: a language model writes, and it is behind an endpoint.

    Raises:
        CoevoError: they are not acceptable.
    """
    from coevo.configs.load.load import mistakes

    if not isinstance(settings, Mapping):
        raise CoevoError(f"writer = {shortened(settings)}: write a function, or settings such as {{'type': …}}")
    try:
        config = _WriterChoice.model_validate({"writer": dict(settings)}).writer
    except ValidationError as error:
        raise CoevoError(mistakes(error, _WriterChoice)) from None
    if not isinstance(config.model, EndpointWriterModelConfig):
        raise CoevoError(
            f"writer.model.type = {config.model.type}: a bank alone has neither policy nor engine: write "
            "{'type': 'endpoint', 'url': …, 'model': …}"
        )
    return config


@contextmanager
def _asking(config: AnyModelWriter, revision: int, directory: Path, warn: Callable[[str], None]) -> Iterator[Writing]:
    """Questions to the endpoint of a configuration; their answers are kept until the caller has used them."""
    # Its client takes half a second to import.
    from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel

    assert isinstance(config.model, EndpointWriterModelConfig)
    model: WriterModel = EndpointWriterModel(config.model, warn)
    try:
        journal = Journal(directory / JOURNAL, revision, committed=lambda _: False)
        yield Writing(model, config.model, journal, KeptWriting(), warn)
    finally:
        model.close()


def forget_answers(directory: Path) -> None:
    """Remove the answers that a revision has used."""
    (directory / JOURNAL).unlink(missing_ok=True)


def _by_function(
    writer: WriterFunction, group: Sequence[ChatTrajectory], scope: str, now: BankContent
) -> Iterator[Entry]:
    memory = Retriever(now.index.over(_visible(now, scope), now.stats))
    sources = tuple(each.id for each in group)[-MAX_SOURCES:]
    for entry in read_lessons(writer(tuple(group), memory), scope, now.revision.number + 1):
        yield replace(entry, sources=sources)


def _by_model(
    config: AnyModelWriter, ask: Ask, group: Iterable[ChatTrajectory], scope: str, now: BankContent
) -> tuple[list[Entry], tuple[Reject, ...]]:
    library = Library(_visible(now, scope), now.stats)
    number = now.revision.number + 1
    evidence = Evidence([episode_of(each) for each in group], library, References(BY_SCOPE, 0), number, ask)
    proposal = writer_of(config, BY_SCOPE).write(evidence)
    # A model may declare a lesson general: it is still written from this scope alone.
    return [_vetted(rescoped(entry, scope)) for entry in proposal.entries], proposal.rejects


def _visible(now: BankContent, scope: str) -> list[Entry]:
    return [entry for entry in now.index.library.entries if entry.scope in ("", scope)]


def _vetted(entry: Entry) -> Entry:
    """An entry that can be stored and read back."""
    named = replace(entry, id=entry_id(entry.scope, entry.strategy))
    return vet({**asdict(named), "sources": list(named.sources)}, f"lesson {named.id}")


ReplayFunction = Callable[[Retriever, Entry, range], Iterable[float]]
"""``replay(memory, lesson, draws)``: one reward per draw, of a task that is played with what ``memory`` retrieves.

A number in ``draws`` chooses the task and all random numbers: the function is called twice with the same lesson and
draws, and only ``memory`` differs, which holds the lesson or does not. Numbers do not repeat from revision to revision.
"""


@dataclass(frozen=True)
class CheckedReplay:
    """``Replay`` of an admission by a function of the user.

    Attributes:
        function: of the user.
        index: of the active entries.
        first: number of the first draw.
        rewards: lowest and highest reward.
    """

    function: ReplayFunction
    index: ScopedIndex
    first: int
    rewards: tuple[float, float]

    def __call__(self, trials: Sequence[Trial], replicas: int) -> list[list[float]]:
        """(trials, replicas) rewards.

        Raises:
            CoevoError: the function returned something else than one reward per draw.
        """
        return [self._played(trial, replicas) for trial in trials]

    def _played(self, trial: Trial, replicas: int) -> list[float]:
        (lesson,) = (*trial.sources, *trial.read)
        draws = range(self.first + trial.first, self.first + trial.first + replicas)
        found = self.function(Retriever(self._tried(trial)), lesson, draws)
        try:
            rewards = list(found)
        except TypeError:
            raise CoevoError(f"replay returned {shortened(found)}: return a list with one reward per draw") from None
        if len(rewards) != len(draws):
            raise CoevoError(f"replay returned {len(rewards)} rewards for {len(draws)} draws: return one per draw")
        return [self._checked(reward, draw) for reward, draw in zip(rewards, draws, strict=True)]

    def _tried(self, trial: Trial) -> ScopedIndex:
        if not trial.added and not trial.removed:
            return self.index
        gone = {entry.id for entry in (*trial.removed, *trial.added)}
        kept = [entry for entry in self.index.library.entries if entry.id not in gone]
        return self.index.over([*kept, *trial.added])

    def _checked(self, reward: object, draw: int) -> float:
        low, high = self.rewards
        try:
            value = float(reward)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = float("nan")
        if isinstance(reward, str) or not low <= value <= high:  # NaN is in no range
            raise CoevoError(
                f"replay returned {shortened(reward)} for draw {draw}: return a number from {low:g} to {high:g}"
            )
        return value


def require_rewards(rewards: object) -> None:
    """Make sure that these are a lowest and a highest reward.

    Raises:
        CoevoError: they are no two finite numbers, the lower one first.
    """
    match rewards:
        case (int() | float() as low, int() | float() as high) if low < high and isfinite(low) and isfinite(high):
            return
    raise CoevoError(f"rewards = {shortened(rewards)}: are no bounds: write (lowest, highest), such as (0, 1)")


MAX_REPLAYS = 1000
"""Most draws of a revision, so that no two revisions share one."""


@dataclass(frozen=True)
class BankJudge:
    """Judge of candidates and entries; the attributes are the arguments of ``StandaloneBank.learn``.

    Raises:
        CoevoError: one of them is not acceptable.
    """

    replay: ReplayFunction
    replays: int
    confidence: float
    rewards: tuple[float, float]

    def __post_init__(self) -> None:
        if type(self.replays) is not int or not 1 <= self.replays <= MAX_REPLAYS:
            raise CoevoError(f"replays = {shortened(self.replays)}: write a whole number from 1 to {MAX_REPLAYS}")
        if not isinstance(self.confidence, float) or not 0.5 < self.confidence < 1:
            raise CoevoError(f"confidence = {shortened(self.confidence)}: write a number above 0.5 and below 1")
        require_rewards(self.rewards)

    def decide(self, now: BankContent) -> Decision:
        """Judge all candidates of the newest revision, each by itself."""
        number = now.revision.number + 1
        candidates = tuple(entered(entry, number) for entry in now.revision.candidates)
        state = AdmissionState(looks=Measurements.stored(now.view).of, span=self._span)
        library = Library(now.index.library.catalogue, now.stats, admission=state)
        config = ReplayAdmissionConfig(per="entry", replays=self.replays, confidence=self.confidence)
        return ReplayAdmission(config).decide(Proposal(candidates), library, self._played(now), number)

    def measure(self, now: BankContent, entries: list[Entry]) -> tuple[Judged, ...]:
        """Measure each of these active entries, by leaving it out."""
        looks = Measurements.stored(now.view)
        return tuple(self._left_out(now, entry, looks) for entry in entries)

    def _left_out(self, now: BankContent, entry: Entry, looks: Measurements) -> Judged:
        trials = [Trial(read=(entry,), removed=gone) for gone in ((), (entry,))]
        sides = PairedRewards(*self._played(now)(trials, self.replays))
        verdict = measured([entry], sides, 0.0, now.revision.number + 1)
        bound = upper_bound([*looks.of(entry.id), verdict], self.confidence, self._span)
        return Judged(replace(verdict, admitted=True, bound=bound), (entry,))

    def _played(self, now: BankContent) -> CheckedReplay:
        # Measurements of a lesson are pooled, so each revision needs draws of its own.
        return CheckedReplay(self.replay, now.index, (now.revision.number + 1) * MAX_REPLAYS, self.rewards)

    @property
    def _span(self) -> float:
        low, high = self.rewards
        return float(high - low)
