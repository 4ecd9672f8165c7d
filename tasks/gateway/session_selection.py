"""The sessions that an iteration learns from, chosen by the order of their lines alone: a resumed run chooses the same.

A line is taken once. A session whose group has no second member yet waits for one, where the estimator compares within
groups, until its policy is too old.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coevo.records.episode import total
from coevo.records.task import Task
from coevo.tasks.gateway.session_episodes import EpisodeReader, rewards_of
from coevo.tasks.gateway.session_store import SessionRecord

FOLDER = "sessions"
"""Name of the artifact."""
FILE = "sessions.json"
SCORES = 200
"""Maximum number of names of scores in an iteration; each is a metric."""


@dataclass(frozen=True, slots=True)
class TakenSessions:
    """Lines of a gateway's sessions that a run has taken, as a revision keeps them.

    Attributes:
        lines: number of lines that were looked at.
        last: session of the last of them, by which a branch of the run knows that its gateway's lines are others.
        waiting: those of them, counted from 0, that wait for others of their group.
    """

    lines: int = 0
    last: str = ""
    waiting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """Rule of the sessions that an iteration may learn from.

    Attributes:
        outcomes: number of sessions that close it.
        grouped: whether a session is compared with others of its group.
        held_out: ids of the tasks of evaluation sets.
        held_out_data: digests of the data of these tasks: whatever a client calls a task, its data are that of the
            environment.
        reward_range: bounds of a session's reward.
        starts: whether the run can play a task again, where it has to; else any task will do.
    """

    outcomes: int
    grouped: bool
    held_out: frozenset[str] = frozenset()
    held_out_data: frozenset[str] = frozenset()
    reward_range: tuple[float, float] = (0.0, 1.0)
    starts: Callable[[Task], bool] = lambda task: True


@dataclass(frozen=True, slots=True)
class ChosenSession:
    """A session to learn from, with the task of its group."""

    line: int
    record: SessionRecord
    task: Task


@dataclass
class Selection:
    """Sessions of an iteration.

    Attributes:
        chosen: in the order of their lines.
        alone: those without a second one in their group.
        left_out: number of sessions by the reason why nothing learns from them.
        lines: number of lines that were looked at.
        last: session of the last of them.
        unread: lines that wait since earlier iterations, and were not needed.
    """

    chosen: list[ChosenSession] = field(default_factory=list)
    alone: list[ChosenSession] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    last: str = ""
    unread: tuple[int, ...] = ()

    @property
    def waiting(self) -> tuple[int, ...]:
        """Lines that wait for others of their group."""
        return (*(each.line for each in self.alone), *self.unread)

    @property
    def taken(self) -> TakenSessions:
        """The lines that this selection takes."""
        return TakenSessions(self.lines, self.last, self.waiting)


def select(
    records: Mapping[int, SessionRecord], taken: TakenSessions, reader: EpisodeReader, rule: SelectionRule
) -> Selection:
    """Choose sessions, up to the line that completes an iteration.

    Args:
        records: sessions by line, which wait or were not looked at.
        taken: lines that were looked at before.
        reader: tells which sessions are fresh, and their tasks.
        rule: what may be learned from.
    """
    found, tasks, members = Selection(lines=taken.lines, last=taken.last), dict[str, Task](), list[ChosenSession]()
    sizes, left, scores = Counter[str](), sorted(records), set[str]()
    while left and _usable(sizes, rule) < rule.outcomes:
        line = left.pop(0)
        record = records[line]
        if line >= found.lines:
            found.lines, found.last = line + 1, record.session
        task = tasks.get(record.group) or reader.task(record)
        if reason := _unfit(record, task, reader, rule) or _unnamed(record, scores):
            found.left_out[reason] += 1
            continue
        tasks |= {record.group: task} if record.group else {}
        members.append(ChosenSession(line, record, task))
        sizes[task.id] += 1
    found.chosen = [each for each in members if _counts(sizes[each.task.id], rule)]
    found.alone = [each for each in members if not _counts(sizes[each.task.id], rule)]
    found.unread = tuple(line for line in left if line in taken.waiting)
    return found


def _counts(size: int, rule: SelectionRule) -> bool:
    return size > 1 or not rule.grouped


def _usable(sizes: Counter[str], rule: SelectionRule) -> int:
    return sum(size for size in sizes.values() if _counts(size, rule))


def _unfit(record: SessionRecord, task: Task, reader: EpisodeReader, rule: SelectionRule) -> str:
    """Reason why nothing learns from a session; empty if it may."""
    if record.outcome is None:
        return record.end
    low, high = rule.reward_range
    own = reader.task(record)
    checks = (
        ("stale", reader.is_fresh(record)),
        ("reward", low <= total(rewards_of(record, record.outcome)) <= high),  # of NaN, too, this is false
        ("held_out", not any(_is_held_out(each, rule) for each in (task, own))),
        ("task", (not record.task.data or own.id == task.id) and rule.starts(task)),
    )
    return next((reason for reason, holds in checks if not holds), "")


def _is_held_out(task: Task, rule: SelectionRule) -> bool:
    return task.id in rule.held_out or task.data_digest in rule.held_out_data


def _unnamed(record: SessionRecord, names: set[str]) -> str:
    """Reason why nothing learns from a session whose scores have too many new names; else these are added."""
    assert record.outcome is not None
    if len(names | record.outcome.scores.keys()) > SCORES:
        return "scores"
    names.update(record.outcome.scores)
    return ""


def write_taken(taken: TakenSessions, staging: Path) -> None:
    """Stage the taken lines for the commit."""
    (staging / FOLDER).mkdir(parents=True, exist_ok=True)
    (staging / FOLDER / FILE).write_text(json.dumps(asdict(taken), sort_keys=True) + "\n", encoding="utf-8")


def read_taken(directory: Path | None) -> TakenSessions:
    """Taken lines of a committed artifact; none for None."""
    if directory is None:
        return TakenSessions()
    stored = json.loads((directory / FILE).read_text(encoding="utf-8"))
    return TakenSessions(stored["lines"], stored["last"], tuple(stored["waiting"]))
