"""Discovery@k (RetroAgent section 4.3): share of tasks solved within k attempts, with lessons of failed attempts.

Between attempts the run's own writer and admission change a copy of the bank that is the task's alone and lives in
memory only: nothing of it reaches the run, and no task profits from another one of the panel. Where the run's admission
tests candidates by further rollouts, they enter untested here: a rollout of their task would be one more attempt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn

from coevo.configs.bank.admission_config import AppendAdmissionConfig
from coevo.configs.run_config import RunConfig
from coevo.memory.admission.admission import Admission, Trial, admission_of
from coevo.memory.bank_state import BankState
from coevo.memory.evidence.references import References
from coevo.memory.retrieval.index import Index
from coevo.memory.writers.writer import Ask, Evidence, Writer
from coevo.records.draws import extend, key
from coevo.records.episode import Episode, played
from coevo.records.task import Panel, key_by
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.play.retrieve import NOTHING, Experience, assign_clusters, is_shown, recall


@dataclass(frozen=True)
class DiscoveryAgent:
    """Policy and bank that attempt a task repeatedly; neither is changed.

    Attributes:
        config: of the run.
        worker: plays with its policy.
        writer: writes after a failed attempt; None without a bank.
        start: the bank that every task begins with.
        references: earlier episodes that the writer looks at.
        ask: puts the writer's questions to its writer model.
        revision: of policy and bank.
        iterations: that they have behind them.
    """

    config: RunConfig
    worker: RolloutWorker
    writer: Writer | None
    start: BankState
    references: References
    ask: Ask
    revision: int
    iterations: int

    @cached_property
    def admission(self) -> Admission:
        """Rule that decides about the writer's proposals; only with a bank."""
        bank = self.config.bank
        assert bank is not None
        tests = bank.admission.needs_replay or bank.admission.type == "within-group"
        return admission_of(AppendAdmissionConfig(type="append") if tests else bank.admission)


def discover(
    learner: DiscoveryAgent, panel: Panel, seen: Experience, first: Sequence[Episode], attempts: int
) -> tuple[dict[int, float], list[Episode]]:
    """Share of a panel's tasks that are solved within so many attempts, by number; and the attempts after the first.

    A task whose first attempt the environment loses is left out. A later attempt that is lost has failed, and teaches
    nothing.

    Args:
        learner: attempts the tasks.
        panel: tasks to attempt.
        seen: experience of the first attempts.
        first: the first attempts, those of the ordinary evaluation.
        attempts: k; nothing is attempted again, and nothing returned, where it is 0.
    """
    begun, notes = played(first), Notes(learner, panel, seen)
    failed, later, shares = failed_of(begun), list[Episode](), dict[int, float]()
    for number in range(1, attempts + 1):
        if number > 1:
            more = again(learner, panel, notes, failed, number)
            failed = failed_of(more)
            later += more
        shares[number] = 1 - len(failed) / max(1, len(begun))
    return shares, later


def failed_of(episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes without success, in order."""
    return [episode for episode in episodes if not episode.success]


class Notes:
    """Experience of the next attempt at each task.

    A panel that brings its own entries, or none, asks what the policy does with those: its attempts see no others.
    """

    def __init__(self, learner: DiscoveryAgent, panel: Panel, seen: Experience) -> None:
        self._learner, self._seen = learner, seen
        self._bank = learner.config.bank if learner.worker.env.panel_bank(panel.name) is None else None
        self._books: dict[str, BankState] = {}

    def after(self, failed: Episode, number: int) -> Experience:
        """Experience of attempt ``number``, after the one before has failed."""
        bank, name = self._bank, failed.task.id
        if bank is None:
            return self._seen
        book = self._books[name] = learn(self._learner, self._books.get(name, self._learner.start), failed)
        if not is_shown(bank.retrieval, self._learner.iterations, len(book.entries)):
            return NOTHING
        index = book.over(self._index)
        return recall(index, key(self._learner.config.seed, "evaluate", "attempt", number))

    @cached_property
    def _index(self) -> Index:
        """One of its own, made when it is needed: the run's must not come to know texts of a panel."""
        book, bank = self._learner.start, self._bank
        assert bank is not None
        return Index(book.entries, bank.retrieval, book.stats, book.clusters, key=key_by(bank.key))


def again(learner: DiscoveryAgent, panel: Panel, notes: Notes, failed: Sequence[Episode], number: int) -> list[Episode]:
    """One attempt more at tasks whose last attempt failed."""
    base = key(learner.config.seed, "evaluate")
    attempts = []
    for task, told in [(episode.task, notes.after(episode, number)) for episode in failed]:
        draws = extend(base, task.id, "attempt", number)
        step = partial(told.of_step, task)
        stage, revision = f"evaluate-{panel.name}", learner.revision
        attempts.append(Attempt(task, number - 1, told.of_task(task), stage, revision, draws, step))
    return learner.worker.play(attempts)


def learn(learner: DiscoveryAgent, book: BankState, failed: Episode) -> BankState:
    """The bank of a task after a failed attempt; the one before stays as it is, and is returned if nothing taught."""
    if not failed.teaches:
        return book
    writer, revision = learner.writer, learner.revision
    assert writer is not None
    book = book.copy()
    (failed,) = [failed] if book.pools is None else assign_clusters(book.pools, [failed])
    book.update_statistics([failed], utilities=True)
    library = book.library()
    proposal = writer.write(Evidence([failed], library, learner.references, revision, learner.ask))
    book.apply(learner.admission.decide(proposal, library, _no_replay, revision), [failed])
    return book


def _no_replay(trials: Sequence[Trial], replicas: int) -> NoReturn:
    raise AssertionError("no admission between attempts replays")
