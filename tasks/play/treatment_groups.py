"""Training groups that try a candidate: the treated half plays with it, the control half without.

Every other replica is treated. So both halves are equally large, or the control half has one more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.memory.trials import OnTrial, Pair
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import About, Task
from coevo.tasks.play.retrieve import Entries, Experience, sees


class WithCandidate:
    """Retrieval as if a candidate were in the bank: it has the rank that a search with it gives, others keep theirs.

    Args:
        candidate: the candidate.
        seen: experience of the bank.
        found: experience of the bank and the candidate.
    """

    def __init__(self, candidate: Entry, seen: Experience, found: Experience) -> None:
        self._candidate, self._seen, self._found = candidate, seen, found

    def of_task(self, task: About) -> Entries:
        """Entries for the whole episode, best first."""
        return inserted(self._candidate, self._seen.of_task(task), self._found.of_task(task))

    def of_step(self, task: About, observation: str) -> Entries:
        """Entries for one turn, best first."""
        return inserted(self._candidate, self._seen.of_step(task, observation), self._found.of_step(task, observation))


def inserted(candidate: Entry, seen: Entries, found: Entries) -> Entries:
    """Entries of the bank with a candidate at its rank among those found; unchanged if it was not found.

    They are at most as many as were found.
    """
    if candidate not in found:
        return seen
    better = [entry for entry in found[: found.index(candidate)] if entry in seen]
    return (*better, candidate, *(entry for entry in seen if entry not in better))[: len(found)]


class TreatmentGroups:
    """Candidates that the groups of one iteration try.

    Args:
        chosen: candidate on trial by task id.
        found: experience of the bank and one candidate, by the candidate's id.
        retrieval: says which replicas see the bank.
        group: replicas of a task.
    """

    def __init__(
        self,
        chosen: Mapping[str, OnTrial],
        found: Mapping[str, Experience],
        retrieval: AnyRetrievalConfig,
        group: int,
    ) -> None:
        self._chosen, self._found = chosen, found
        self._seers = [replica for replica in range(group) if sees(retrieval, replica, group)]

    def sees(self, replica: int) -> bool:
        """Report whether a replica sees the bank: it plays with a candidate, or is compared with one that does."""
        return replica in self._seers

    def treats(self, task: str, replica: int) -> bool:
        """Report whether a replica of a task plays with a candidate."""
        return task in self._chosen and replica in self._seers[1::2]

    def experience(self, task: str, seen: Experience) -> Experience:
        """Experience of the treated replicas of a task; ``seen`` is that of the others."""
        candidate = self._chosen[task].entry
        return WithCandidate(candidate, seen, self._found[candidate.id])

    def groups(self, episodes: Sequence[Episode], candidate: str) -> list[list[Pair]]:
        """Matched episodes of the two halves, by group, for every task that tries a candidate.

        A group counts whether or not a prompt of it held the candidate (intention to treat): where retrieval reads
        observations, who sees the candidate depends on how the episode goes, and groups chosen by it would be biased.
        Pairs with a lost episode are left out.
        """
        tasks = [task for task, trial in self._chosen.items() if trial.entry.id == candidate]
        return [pairs for task in tasks if (pairs := self._pairs(episodes, task, candidate))]

    def _pairs(self, episodes: Sequence[Episode], task: str, candidate: str) -> list[Pair]:
        played = {episode.replica: episode for episode in episodes if episode.task.id == task and not episode.lost}
        matched = [(played.get(a), played.get(b)) for a, b in zip(self._seers[1::2], self._seers[::2], strict=False)]
        return [Pair(ours.reward, theirs.reward, _saw(ours, candidate)) for ours, theirs in matched if ours and theirs]


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """The tasks of an iteration.

    Attributes:
        tasks: in the order of the groups that play them; empty where parallel environments draw their own.
        tried: the candidates that some of the groups try; None if there is none.
    """

    tasks: Sequence[Task]
    tried: TreatmentGroups | None = None


def _saw(episode: Episode, candidate: str) -> bool:
    return any(candidate in turn.retrieved for turn in episode.turns)
