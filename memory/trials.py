"""Candidates on trial: entries outside of the bank, with the rewards of the groups that tried them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from json import dumps
from math import isfinite
from typing import NamedTuple

from coevo.memory.validate import listed, vet
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

MAX_TASKS = 8
"""Most source tasks of a candidate that are played again; the first ones."""


class Pair(NamedTuple):
    """Rewards of two matched episodes, with and without a candidate in the bank, and whether the first one saw it."""

    ours: float
    theirs: float
    saw: bool = True


@dataclass(frozen=True, slots=True)
class OnTrial:
    """A candidate on trial.

    Attributes:
        entry: the candidate.
        tasks: source tasks, in the order they were played.
        iterations: iterations that it has been on trial.
        groups: groups that have tried it.
        rewards_with: (pairs,) rewards of the episodes with it in the bank.
        rewards_without: (pairs,) rewards of the matched episodes without it.
        unseen: number of the episodes with it none of whose prompts held it.
    """

    entry: Entry
    tasks: tuple[Task, ...]
    iterations: int = 0
    groups: int = 0
    rewards_with: tuple[float, ...] = ()
    rewards_without: tuple[float, ...] = ()
    unseen: int = 0

    @property
    def seen_share(self) -> float:
        """Share of the episodes with it in the bank that saw it in a prompt; 0 without any."""
        return 1 - self.unseen / len(self.rewards_with) if self.rewards_with else 0.0

    def after(self, groups: Sequence[Sequence[Pair]]) -> "OnTrial":
        """The candidate after one more iteration, in which these groups have tried it.

        Args:
            groups: matched pairs, group by group.
        """
        pairs = [pair for group in groups for pair in group]
        return replace(
            self,
            iterations=self.iterations + 1,
            groups=self.groups + len(groups),
            rewards_with=(*self.rewards_with, *(pair.ours for pair in pairs)),
            rewards_without=(*self.rewards_without, *(pair.theirs for pair in pairs)),
            unseen=self.unseen + sum(not pair.saw for pair in pairs),
        )


def begun(entries: Iterable[Entry], episodes: Sequence[Episode]) -> list[OnTrial]:
    """Candidates at the beginning of their trial; ``episodes`` are their sources."""
    tasks = {episode.id: episode.task for episode in episodes}
    found = [(entry, [tasks[source] for source in entry.sources if source in tasks]) for entry in entries]
    return [OnTrial(entry, tuple({task.id: task for task in known}.values())[:MAX_TASKS]) for entry, known in found]


def revisited(trials: Sequence[OnTrial], most: int) -> dict[str, tuple[OnTrial, Task]]:
    """Source tasks that an iteration plays again, by task id, with the candidate that each one tries.

    Candidates that the fewest groups have tried come first, then the oldest; each in turn gets the next of its tasks.
    """
    chosen: dict[str, tuple[OnTrial, Task]] = {}
    order = sorted(trials, key=lambda trial: trial.groups)
    for turn in range(MAX_TASKS):
        for trial in order:
            if len(chosen) < most and turn < len(trial.tasks):
                task = trial.tasks[(trial.groups + turn) % len(trial.tasks)]
                chosen.setdefault(task.id, (trial, task))
    return chosen


def text(trials: Sequence[OnTrial]) -> str:
    """Canonical JSON, in the order of the trials."""
    return dumps([_plain(trial) for trial in trials], sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)


def parse(lines: str) -> list[OnTrial]:
    """Parse the output of ``text``; a pulled run may hold anything.

    Raises:
        CoevoError: it has another form, or a candidate could not be an entry.
    """
    found = listed(OnTrial, lines, "trials")
    for index, trial in enumerate(found):
        where = f"the revision's trials: candidate {index}"
        vet({**asdict(trial.entry), "sources": list(trial.entry.sources)}, where)
        _check_sums(trial, where)
    return found


def _check_sums(trial: OnTrial, where: str) -> None:
    if any(task.split != "train" for task in trial.tasks):
        raise CoevoError(f"{where} has a task of an evaluation; roll back to another revision")
    rewards = (*trial.rewards_with, *trial.rewards_without)
    if len(trial.rewards_with) != len(trial.rewards_without) or not all(map(isfinite, rewards)):
        raise CoevoError(f"{where} has rewards that are no pairs of numbers; roll back to another revision")
    if not 0 <= trial.unseen <= len(trial.rewards_with):
        raise CoevoError(f"{where} was unseen in {trial.unseen} of {len(trial.rewards_with)} episodes; roll back")


def _plain(trial: OnTrial) -> dict[str, object]:
    fields = ("env", "kind", "instruction", "scope", "split")
    tasks = [{name: getattr(task, name) for name in fields} | {"data": dict(task.data)} for task in trial.tasks]
    return asdict(replace(trial, tasks=())) | {"tasks": tasks}
