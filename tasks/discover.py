"""Discovery@k (RetroAgent section 4.3): is a task solved within k attempts, each told what the failed ones taught?

Between attempts the run's own writer and admission change a copy of the bank that is the task's alone and lives in
memory only: nothing of it reaches the run, and no task profits from another one of the panel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NoReturn

from configs.bank import BankConfig
from configs.errors import CoevoError
from configs.run import RunConfig
from memory.admission.base import Admission, Trial
from memory.clusters import Clusters
from memory.index import Index
from memory.library import Library
from memory.references import References
from memory.stats import Stats, born, tally
from memory.writers.base import Evidence, Writer
from records.draws import extend, key
from records.entry import Entry
from records.episode import Episode
from records.task import Panel, key_by
from tasks.play import Attempt, Player
from tasks.recognise import associate, recognise
from tasks.retrieve import NOTHING, Experience, is_shown, recall
from tasks.session import Session


@dataclass(frozen=True)
class Notebook:
    """A bank in memory: active entries, their counters, and the clusters that retrieval reads."""

    entries: tuple[Entry, ...]
    stats: Mapping[str, Stats]
    clusters: Clusters | None


@dataclass(frozen=True)
class Learner:
    """Whoever attempts a task again and again; nothing of it is changed.

    Attributes:
        config: of the run.
        player: plays with its policy.
        writer: what writes after a failed attempt, and ``admission`` what lets that in; None without a bank.
        admission: see ``writer``.
        start: the bank that every task begins with.
        references: earlier episodes that the writer looks at.
        revision: of policy and bank.
        iterations: that they have behind them.
    """

    config: RunConfig
    player: Player
    writer: Writer | None
    admission: Admission | None
    start: Notebook
    references: References
    revision: int
    iterations: int


def learner_of(session: Session) -> Learner:
    """The revision in the making."""
    parts, start = session.parts, Notebook(tuple(session.entries), dict(session.stats), session.clusters)
    references, revision = session.references, session.draft.revision
    return Learner(
        session.config, parts.player, parts.writer, parts.admission, start, references, revision, session.updates()
    )


def discover(
    learner: Learner, panel: Panel, seen: Experience, first: Sequence[Episode], attempts: int
) -> dict[int, float]:
    """Share of a panel's tasks that are solved within so many attempts, by number of attempts.

    Args:
        learner: who attempts them.
        panel: what is played.
        seen: what the first attempts were told.
        first: the first attempts, those of the ordinary evaluation.
        attempts: k; nothing is attempted again, and nothing returned, where it is 0.
    """
    failed, shares = [episode for episode in first if not episode.success], dict[int, float]()
    notes = Notes(learner, panel, seen)
    for number in range(1, attempts + 1):
        if number > 1:
            failed = again(learner, panel, notes, failed, number)
        shares[number] = 1 - len(failed) / len(first)
    return shares


class Notes:
    """What the next attempt at each task is told.

    A panel that brings its own entries, or none, asks what the policy does with those: its attempts see no others.
    """

    def __init__(self, learner: Learner, panel: Panel, seen: Experience) -> None:
        self._learner, self._seen = learner, seen
        self._bank = learner.config.bank if learner.player.env.panel_bank(panel.name) is None else None
        self._books: dict[str, Notebook] = {}

    def after(self, failed: Episode, number: int) -> Experience:
        """What an attempt is told after another one has failed; ``number`` is the new one's."""
        bank, name = self._bank, failed.task.id
        if bank is None:
            return self._seen
        book = self._books[name] = learn(self._learner, bank, self._books.get(name, self._learner.start), failed)
        if not is_shown(bank.retrieval, self._learner.iterations, len(book.entries)):
            return NOTHING
        index = self._index.over(book.entries, book.stats, book.clusters)
        return recall(index, key(self._learner.config.seed, "evaluate", "attempt", number))

    @cached_property
    def _index(self) -> Index:
        """One of its own, made when it is needed: the run's must not come to know texts of a panel."""
        book, bank = self._learner.start, self._bank
        assert bank is not None
        return Index(book.entries, bank.retrieval, book.stats, book.clusters, key=key_by(bank.key))


def again(learner: Learner, panel: Panel, notes: Notes, failed: Sequence[Episode], number: int) -> list[Episode]:
    """One attempt more at tasks whose last attempt failed; those that fail again."""
    base = key(learner.config.seed, "evaluate")
    attempts = []
    for task, told in [(episode.task, notes.after(episode, number)) for episode in failed]:
        draws = extend(base, task.id, "attempt", number)
        step = partial(told.of_step, task)
        stage, revision = f"evaluate-{panel.name}", learner.revision
        attempts.append(Attempt(task, number - 1, told.of_task(task), stage, revision, draws, step))
    return [episode for episode in learner.player.play(attempts) if not episode.success]


def learn(learner: Learner, bank: BankConfig, book: Notebook, failed: Episode) -> Notebook:
    """The bank of a task after an attempt that failed; the one before is left as it is."""
    writer, admission, revision = learner.writer, learner.admission, learner.revision
    assert writer is not None
    assert admission is not None
    clusters = book.clusters.copy() if book.clusters is not None and bank.retrieval.type == "cluster" else None
    (failed,) = [failed] if clusters is None else recognise(clusters, [failed])
    stats = dict(book.stats) | {each.id: each for each in tally(book.stats, [failed], bank.utility)}
    library = Library(book.entries, stats, clusters)
    proposal = writer.write(Evidence([failed], library, learner.references, revision))
    decision = admission.decide(proposal, library, _no_replay, revision)
    if clusters is not None:
        associate(clusters, decision.entries, [failed])
    changed = [entry.id for entry in decision.entries]
    stats |= {each.id: each for each in born(changed, decision.utility, stats, bank.utility)}
    held = {entry.id: entry for entry in (*book.entries, *decision.entries)}
    return Notebook(tuple(entry for entry in held.values() if entry.active), stats, clusters)


def _no_replay(trials: Sequence[Trial], replicas: int) -> NoReturn:
    raise CoevoError(
        "evaluation.discovery counts attempts, and a replay would be one more: set bank.admission.type=append"
    )
