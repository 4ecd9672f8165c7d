"""A bank that stands alone: a directory that one process at a time changes while any number read it."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.configs.bank.retrieval_config import (
    AnyRetrievalConfig,
    Bm25Config,
    EmbeddingConfig,
    TfidfConfig,
    TfidfEmbeddingConfig,
)
from coevo.memory.admission.rulings import barred, ruling
from coevo.memory.bank.change import BankChange, Judged
from coevo.memory.bank.diff import BankDiff, diff
from coevo.memory.stats import Stats
from coevo.memory.validate import shortened
from coevo.records.entry import Entry
from coevo.tasks.bank_alone.bank_reader import BankContent, BankReader, active_entry, require_k
from coevo.tasks.bank_alone.bank_revisions import BankRevision
from coevo.tasks.bank_alone.bank_store import MAX_WAITING, BankFullError, BankStore, UndecidedItems, WaitingQuota
from coevo.tasks.bank_alone.chat_trajectory import ChatTrajectory, checked_trajectory
from coevo.tasks.bank_alone.new_lesson import LessonText, ScopeName, read_lessons
from coevo.utilities.errors import CoevoError, counted, unknown

if TYPE_CHECKING:
    from coevo.tasks.bank_alone.bank_growth import BankJudge, LessonWriter, ReplayFunction, WriterReport

RETRIEVALS: dict[str, type[TfidfConfig | Bm25Config | EmbeddingConfig | TfidfEmbeddingConfig]] = {
    "tfidf": TfidfConfig,
    "bm25": Bm25Config,
    "embedding": EmbeddingConfig,
    "tfidf+embedding": TfidfEmbeddingConfig,
}
"""Kinds of retrieval that need nothing but the entries."""


def open_bank(path: Path | str, retrieval: str = "tfidf", k: int = 8) -> "StandaloneBank":
    """Open the bank in a directory, created if missing, for reading and writing.

    Any number of processes may open one bank. Each change is one revision: readers see it whole, or the one before.

    Args:
        path: directory of the bank.
        retrieval: ``tfidf``, ``bm25``, ``embedding`` or ``tfidf+embedding`` (the last two need the extra
            ``embedding``).
        k: number of entries that a query returns.

    Returns:
        The bank.

    Raises:
        CoevoError: an argument is not acceptable, the directory holds something else, or the bank is damaged.
    """
    if not isinstance(retrieval, str) or retrieval not in RETRIEVALS:
        raise CoevoError(unknown("retrieval", str(retrieval), RETRIEVALS, f"Choose one of {', '.join(RETRIEVALS)}"))
    require_k(k)
    return StandaloneBank(Path(path), RETRIEVALS[retrieval].model_validate({"type": retrieval, "k": k}))


class BankHistory:
    """The revisions of a bank: list, read, compare, return to one, and remove old ones.

    Args:
        store: the directory of the bank.
    """

    def __init__(self, store: BankStore) -> None:
        self._store = store

    def log(self) -> list[BankRevision]:
        """All revisions that are kept, the oldest first."""
        numbers = range(self._store.revisions.first(), self._store.newest().revision.number + 1)
        return [self._store.revisions.read(number) for number in numbers]

    def prune(self, keep: int) -> int:
        """Remove all but the last revisions from the disk, with the trajectories that only they need.

        Args:
            keep: number of revisions that stay, at least 1.

        Returns:
            Number of the oldest revision that is left.

        Raises:
            CoevoError: the number is not acceptable, or a kept revision is damaged; nothing was removed.
        """
        if type(keep) is not int or keep < 1:
            raise CoevoError(f"keep = {shortened(keep)}: write a number of revisions, 1 or more")
        with self._store.writing() as now:
            return self._store.prune(now, keep)

    def at(self, revision: int) -> BankReader:
        """The bank as it was at a revision, read-only.

        Raises:
            CoevoError: there is no such revision, or its tables are damaged.
        """
        return BankReader(self._store.read(revision))

    def diff(self, old: int, new: int) -> BankDiff:
        """Entries that were added, edited and retired between two revisions; errors are those of ``at``."""
        return diff(self._store.read(old).view.rows(), self._store.read(new).view.rows())

    def rollback(self, revision: int) -> None:
        """Return to the content of a revision, candidates and measurements included, as a new revision.

        Raises:
            CoevoError: there is no such revision, or its tables are damaged.
        """
        with self._store.writing() as now:
            self._store.roll_back(now, self._store.read(revision).revision)


class StandaloneBank(BankReader):
    """A bank that agents of any kind read and improve, see ``open_bank``.

    Reads follow the newest revision, whichever process made it. A change raises ``CoevoError`` while another process
    makes one.

    Args:
        path: directory of the bank.
        config: of retrieval.

    Attributes:
        history: its revisions.
    """

    def __init__(self, path: Path, config: AnyRetrievalConfig) -> None:
        self._store = BankStore(path, config)
        self.history = BankHistory(self._store)
        super().__init__(self._store.newest())

    def propose(
        self, lessons: Sequence[LessonText], scope: ScopeName = "", quota: WaitingQuota | None = None
    ) -> list[str]:
        """Put lessons forward; ``learn`` decides which of them enter.

        Args:
            lessons: texts, or mappings with ``strategy`` and, if known, ``condition``, ``example`` and ``keywords``.
            scope: text, or names of user, agent and task, that they are restricted to; empty if they apply everywhere.
            quota: limit on the candidates of some scopes.

        Returns:
            Ids of the new candidates: not of lessons that wait already, that the bank holds, or that were retired.

        Raises:
            CoevoError: a lesson is not acceptable, or too many wait; nothing changed.
        """
        with self._store.writing() as now:
            fresh = self._fresh(now, self._new(now, lessons, scope), quota)
            if fresh:
                waits = UndecidedItems(candidates=(*now.revision.candidates, *fresh))
                self._store.commit(now, "propose", counted(len(fresh), "new candidate"), BankChange(), waits)
            return [entry.id for entry in fresh]

    def add(self, lessons: Sequence[LessonText], scope: ScopeName = "") -> list[str]:
        """Let lessons enter without evidence; arguments and errors are those of ``propose``.

        Returns:
            Ids of the new entries: not of lessons that the bank holds, or that were retired.
        """
        with self._store.writing() as now:
            found = self._new(now, lessons, scope)
            gone = {entry.id for entry in found}
            waiting = tuple(entry for entry in now.revision.candidates if entry.id not in gone)
            if found:
                note = f"{counted(len(found), 'lesson')}, without evidence"
                self._store.commit(now, "add", note, BankChange(tuple(found)), UndecidedItems(candidates=waiting))
            return [entry.id for entry in found]

    def learn(
        self,
        replay: "ReplayFunction",
        replays: int = 64,
        confidence: float = 0.95,
        rewards: tuple[float, float] = (0.0, 1.0),
    ) -> list[Judged]:
        """Judge all candidates, each by itself, by paired replays with and without it; those that help enter.

        A candidate enters once the lower bound of its mean gain, over all measurements of its life, is above 0: one
        that does not help enters with probability ``1 - confidence`` at most, however often it is proposed. Refused
        ones leave; their measurements stay.

        Args:
            replay: plays tasks, see ``coevo.tasks.bank_alone.bank_growth.ReplayFunction``. It must not change the
                bank.
            replays: most draws a candidate and side, 1 to 1000; one that has entered is played no further.
            confidence: level of the bound, above 0.5 and below 1.
            rewards: lowest and highest reward.

        Returns:
            Verdict and text of each candidate, in the order of their proposals.

        Raises:
            CoevoError: an argument or a reward is not acceptable; nothing changed.
        """
        judge = _judge(replay, replays, confidence, rewards)
        with self._store.writing() as now:
            decision = judge.decide(now)
            if decision.judged:
                note = f"{len(decision.entries)} of {counted(len(decision.judged), 'candidate')} entered"
                change = BankChange(decision.entries, judged=decision.judged)
                self._store.commit(now, "learn", note, change, UndecidedItems(candidates=()))
            return list(decision.judged)

    def measure(
        self,
        replay: "ReplayFunction",
        entries: Sequence[str],
        replays: int = 64,
        confidence: float = 0.95,
        rewards: tuple[float, float] = (0.0, 1.0),
    ) -> list[Judged]:
        """Measure what entries are worth by replays of the bank with and without each; none leaves by it.

        Args:
            entries: their ids.

        The other arguments and the errors are those of ``learn``; the bound of a verdict is the upper one.
        """
        judge = _judge(replay, replays, confidence, rewards)
        with self._store.writing() as now:
            found = judge.measure(now, [active_entry(now, name) for name in entries])
            if found:
                self._store.commit(now, "measure", counted(len(found), "measurement"), BankChange(left_out=found))
            return list(found)

    def outcomes(self, seen: Iterable[tuple[Iterable[str], bool]]) -> None:
        """Count episodes that saw entries: report many at a time, since each call is a revision.

        Args:
            seen: of each episode, the ids of the entries that its prompts showed, and whether it succeeded.

        Raises:
            CoevoError: an id is not that of an active entry; nothing is counted.
        """
        with self._store.writing() as now:
            episodes = [_episode(now, each) for each in seen]
            changed = _counted(now.stats, episodes)
            if changed:
                self._store.commit(now, "outcomes", counted(len(episodes), "episode"), BankChange(stats=changed))

    def record(self, trajectories: Sequence[ChatTrajectory], quota: WaitingQuota | None = None) -> list[str]:
        """Keep attempts until ``write`` makes lessons of them, and count the entries that they were shown.

        Args:
            trajectories: record many at a time, since each call is a revision.
            quota: limit on the trajectories of some scopes that wait.

        Returns:
            Their ids.

        Raises:
            CoevoError: one is not acceptable, shows an id that is no active entry, or too many wait; nothing changed.
        """
        if isinstance(trajectories, ChatTrajectory) or not isinstance(trajectories, Sequence):
            raise CoevoError(f"trajectories = {shortened(trajectories)}: is no list: write [ChatTrajectory(…), …]")
        checked = [checked_trajectory(each, f"trajectory {place}") for place, each in enumerate(trajectories)]
        with self._store.writing() as now:
            waiting = now.revision.trajectories
            episodes = [_episode(now, (each.shown, each.success)) for each in checked]
            if not checked:
                return []
            if quota is not None:
                scopes = [*self._store.scopes_of(waiting), *(str(each.scope) for each in checked)]
                quota.require(scopes, "trajectories")
            if len(waiting) + len(checked) > MAX_WAITING:
                raise BankFullError(f"more than {MAX_WAITING} trajectories would wait: call write first")
            names = self._store.trajectories.write(now.revision.number + 1, checked)
            change, note = BankChange(stats=_counted(now.stats, episodes)), counted(len(names), "new attempt")
            self._store.commit(now, "record", note, change, UndecidedItems(trajectories=(*waiting, *names)))
            return names

    def trajectories(self) -> list[ChatTrajectory]:
        """Trajectories that wait for a writer, the first recorded first."""
        return self._store.trajectories.read(self._now().revision.trajectories)

    def write(self, writer: "LessonWriter", warn: Callable[[str], None] = warnings.warn) -> "WriterReport":
        """Let a writer propose lessons from the trajectories that wait; ``learn`` decides which of them enter.

        Other processes may change the bank meanwhile. Each trajectory is read once.

        Args:
            writer: ``writer(trajectories, memory)``, called once per scope, which returns lessons as ``propose`` takes
                them; or settings of a writer that asks a model, such as ``{"type": "model-contrast", "model":
                {"type": "endpoint", "url": …, "model": …, "key": …}}`` (needs the extra ``train``). Answers that were
                paid for are used again if the process is killed; ``model.budget`` holds for one call.
            warn: gets a line about what an endpoint does not do as it is asked.

        Returns:
            The new candidates, and what became no candidate.

        Raises:
            CoevoError: writer or lessons are not acceptable, no question was answered, too many candidates would wait,
                or another process writes; all trajectories wait as before.
        """
        from coevo.tasks.bank_alone.bank_growth import WriterReport, forget_answers, written

        with self._store.alone():
            waiting = self.trajectories()
            if not waiting:
                return WriterReport()
            found = written(writer, waiting, self._now(), self._store.path, warn)
            with self._store.writing() as now:
                fresh = self._fresh(now, self._unknown(now, {each.id: each for each in found.entries}.values()))
                left = tuple(name for name in now.revision.trajectories if name not in found.read)
                waits = UndecidedItems((*now.revision.candidates, *fresh), left)
                note = f"{counted(len(fresh), 'new candidate')} from {counted(len(found.read), 'attempt')}"
                self._store.commit(now, "write", note, BankChange(), waits)
            forget_answers(self._store.path)
        names = tuple(entry.id for entry in fresh)
        return WriterReport(names, len(found.read), found.unanswered, found.rejects)

    def retire(self, entry: str, reason: str, by: str = "user") -> None:
        """Take an entry out of use for good: it is not admitted again.

        Args:
            entry: its id.
            reason: why, in one line.
            by: who decided it.

        Raises:
            CoevoError: there is no such active entry, or reason or name are empty or too long.
        """
        with self._store.writing() as now:
            found, number = active_entry(now, entry), now.revision.number + 1
            said = ruling(found, reason, by, number)
            change = BankChange((replace(found, retired=number),), operations=(said,))
            self._store.commit(now, "retire", f"{found.id}: {said.reason}", change)

    def _now(self) -> BankContent:
        return self._store.newest()

    def _new(self, now: BankContent, lessons: Sequence[LessonText], scope: ScopeName) -> list[Entry]:
        """Lessons that the bank does not hold, and that nobody has retired."""
        return self._unknown(now, read_lessons(lessons, scope, now.revision.number + 1))

    def _unknown(self, now: BankContent, lessons: Iterable[Entry]) -> list[Entry]:
        known = now.index.library.row_of.keys() | barred(now.view)
        return [entry for entry in lessons if entry.id not in known]

    def _fresh(self, now: BankContent, lessons: Iterable[Entry], quota: WaitingQuota | None = None) -> list[Entry]:
        """Lessons among these that do not wait yet.

        Raises:
            CoevoError: too many would wait.
        """
        waiting = now.revision.candidates
        waits = {entry.id for entry in waiting}
        fresh = [entry for entry in lessons if entry.id not in waits]
        if fresh and quota is not None:
            quota.require([entry.scope for entry in (*waiting, *fresh)], "candidates")
        if len(waiting) + len(fresh) > MAX_WAITING:
            raise BankFullError(f"more than {MAX_WAITING} candidates would wait: call learn first")
        return fresh


def _judge(replay: "ReplayFunction", replays: int, confidence: float, rewards: tuple[float, float]) -> "BankJudge":
    # Readers need no admission, and its import takes a while.
    from coevo.tasks.bank_alone.bank_growth import BankJudge

    return BankJudge(replay, replays, confidence, rewards)


def _episode(now: BankContent, seen: object) -> tuple[set[str], bool]:
    match seen:
        case (Iterable() as names, success) if success in (True, False) and not isinstance(names, str):
            return {active_entry(now, name).id for name in names}, bool(success)
    raise CoevoError(f"{shortened(seen)} is no outcome: write ([id, ...], True or False)")


def _counted(stats: Mapping[str, Stats], episodes: Iterable[tuple[set[str], bool]]) -> tuple[Stats, ...]:
    """New counters of the entries that these episodes saw, by id."""
    changed: dict[str, Stats] = {}
    for names, success in episodes:
        for name in names:
            old = changed.get(name) or stats.get(name) or Stats(name)
            changed[name] = replace(old, retrievals=old.retrievals + 1, successes=old.successes + success)
    return tuple(changed[name] for name in sorted(changed))
