"""Retrieval: entries of the bank for a task and for an observation (CoEvo-RL Eq. 2, SLEA-RL section 3.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Protocol

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import AnyRetrievalConfig, ClusterRetrievalConfig
from coevo.configs.run_config import RunConfig
from coevo.memory.clusters import Clusters
from coevo.memory.exchange.parquet_files import Readable
from coevo.memory.retrieval.index import Hit, Index
from coevo.records.draws import Key, extend, generator
from coevo.records.entry import Entry
from coevo.records.episode import Episode, Turn
from coevo.records.task import About, Task, key_by, name_of
from coevo.utilities.errors import nearest

Entries = tuple[Entry, ...]
NO_BANK, NOT_SHOWN = "the agent has no bank", "the bank is not shown yet (bank.retrieval)"
"""Reasons why a task finds no lesson without an index."""
MAX_NAME_CHARS = 60
"""Characters of a name in a message."""


class Experience(Protocol):
    """Source of the entries in prompts."""

    def of_task(self, task: About) -> Entries:
        """Entries for the whole episode, best first."""
        ...

    def of_step(self, task: About, observation: str) -> Entries:
        """Entries for one turn, best first."""
        ...


class Given:
    """Fixed entries for every turn of a task, by its id; none for other tasks."""

    def __init__(self, entries: Mapping[str, Entries]) -> None:
        self._entries = entries

    def of_task(self, task: About) -> Entries:
        """Entries given for the task."""
        return self._entries.get(task.id, ())

    def of_step(self, task: About, observation: str) -> Entries:
        """Empty."""
        return ()


NOTHING = Given({})
"""Experience without entries."""


class Retrieved:
    """Retrieval from one version of the bank; equal queries are searched once, however many attempts ask them.

    Attributes:
        index: index to search.
        answers: hits by scope and text of the query, separately for instructions and observations.
        seconds: time spent on searches.
    """

    def __init__(self, index: Index, draw: Key) -> None:
        self.index = index
        self.answers: dict[str, dict[tuple[str, str], list[Hit]]] = {"task": {}, "step": {}}
        self.seconds = 0.0
        self._draw = draw
        self._searching = Lock()
        self._tally, self._parts = dict(index.tally), dict(index.seconds)

    def of_task(self, task: About) -> Entries:
        """Entries for the instruction, unless retrieval is per step only."""
        return self._ask("task", task.instruction, self.index.key(task)) if self.index.config.per != "step" else ()

    def of_step(self, task: About, observation: str) -> Entries:
        """Entries for the observation, unless retrieval is per task only."""
        if self.index.config.per == "task":
            return ()
        return self._ask("step", step_query(task, observation, self.index.config), self.index.key(task))

    def scores(self, task: About, observation: str) -> dict[str, float]:
        """Score of each entry that was found for a turn, by its id; that of the instruction where both found it."""
        pool, config = self.index.key(task), self.index.config
        hits = [
            *self.answers["step"].get((pool, step_query(task, observation, config)), ()),
            *self.answers["task"].get((pool, task.instruction), ()),
        ]
        return {hit.entry.id: hit.score for hit in hits}

    def tally(self) -> dict[str, int]:
        """Counts of the scorer since the creation of this object."""
        return {what: count - self._tally.get(what, 0) for what, count in self.index.tally.items()}

    def parts(self) -> dict[str, float]:
        """Seconds of the scorer's own parts since the creation of this object."""
        return {part: spent - self._parts.get(part, 0.0) for part, spent in self.index.seconds.items()}

    def _ask(self, what: str, text: str, scope: str) -> Entries:
        answers = self.answers[what]
        with self._searching:
            if (scope, text) not in answers:
                since = perf_counter()
                answers[scope, text] = self.index.search(text, scope, extend(self._draw, what, scope, text))
                self.seconds += perf_counter() - since
        return tuple(hit.entry for hit in answers[scope, text])


class Best:
    """The best entry of each query to another experience; a query for a turn has one of its own."""

    def __init__(self, seen: Experience) -> None:
        self._seen = seen

    def of_task(self, task: About) -> Entries:
        """The best entry for the whole episode, if any."""
        return self._seen.of_task(task)[:1]

    def of_step(self, task: About, observation: str) -> Entries:
        """The best entry for one turn, if any."""
        return self._seen.of_step(task, observation)[:1]


def with_lesson_scores(episodes: Iterable[Episode], seen: Experience) -> list[Episode]:
    """The episodes, with the scores of the entries in their prompts; those that another source gave have none."""
    if not isinstance(seen, Retrieved):
        return list(episodes)

    def scored(episode: Episode, turn: Turn) -> Turn:
        found = seen.scores(episode.task, turn.observation) if turn.retrieved else {}
        return replace(turn, lesson_scores=tuple(found.get(name) for name in turn.retrieved))

    return [replace(each, turns=tuple(scored(each, turn) for turn in each.turns)) for each in episodes]


def step_query(task: About, observation: str, config: AnyRetrievalConfig) -> str:
    """Query text of a turn."""
    if isinstance(config, ClusterRetrievalConfig) or config.step_query == "observation":
        return observation
    return f"{task.instruction} . {observation}"


def recall(index: Index | None, draw: Key) -> Experience:
    """Retrieval from an index with ``draw`` as the key of random choices; without an index, no entries."""
    return NOTHING if index is None else Retrieved(index, draw)


class Lacking:
    """Reasons why a task finds no lesson of its own in an index over an unchanging bank.

    Args:
        index: index that is searched.
    """

    def __init__(self, index: Index) -> None:
        self._index, self._key = index, name_of(index.key)
        self._pools = frozenset(entry.scope for entry in index.library.entries) - {""}

    def reason(self, task: About, found: bool) -> str:
        """Reason in one line; empty if the task's pool has lessons and ``found`` tells that some are shown."""
        return self.of_pool(self._index.key(task), found)

    def of_pool(self, pool: str, found: bool) -> str:
        """The same for the name of a pool."""
        scoped = self._index.config.scoped and self._pools
        if scoped and pool not in self._pools:
            if not pool:
                return (
                    f"no {self._key} is given, and lessons belong to one, such as {min(self._pools)[:MAX_NAME_CHARS]!r}"
                )
            return f"the bank has no lesson of {self._key} {pool[:MAX_NAME_CHARS]!r}.{nearest(pool, self._pools)}"
        if found:
            return ""
        if not len(self._index.library):
            return "the bank has no lesson"
        where = f" of {self._key} {pool[:MAX_NAME_CHARS]!r}" if scoped else ""
        return f"no lesson{where} matches the instruction or the observation"


def at_random(entries: Sequence[Entry], count: int, tasks: Iterable[Task], key: Key) -> Experience:
    """``count`` entries drawn at random per task: the baseline that shows what retrieval contributes.

    The order of ``entries`` changes nothing: a resumed run holds the same bank in another one.
    """
    ordered, count = sorted(entries, key=lambda entry: entry.id), min(count, len(entries))

    def drawn(task: Task) -> tuple[Entry, ...]:
        return tuple(ordered[i] for i in generator(extend(key, task.id)).choice(len(ordered), count, replace=False))

    return Given({task.id: drawn(task) for task in tasks})


def index_of(bank: Readable, config: RunConfig, clusters: Clusters | None = None) -> Index:
    """Index over the current content of a bank, with the settings of a run; default settings if the run has no bank.

    ``clusters`` are those of the bank, if already loaded.
    """
    if clusters is None and config.clusters is not None:
        clusters = Clusters(config.clusters, bank.clusters())
    settings = config.bank or BankConfig()
    return Index(bank.active(), settings.retrieval, bank.stats(), clusters, key=key_by(settings.key))


def is_shown(config: AnyRetrievalConfig, iterations: int, entries: int) -> bool:
    """Report whether retrieval is active: enough iterations were played, and the bank is large enough."""
    return iterations >= config.warmup and entries > config.min_entries


def sees(config: AnyRetrievalConfig, replica: int, group: int) -> bool:
    """Report whether a rollout is among the first of its training group, which see the bank."""
    return replica < round(config.share * group)


def assign_clusters(clusters: Clusters, episodes: Sequence[Episode]) -> list[Episode]:
    """Assign every turn to a cluster; new clusters are created in the order of episodes and turns."""
    return [
        replace(
            episode, turns=tuple(replace(turn, cluster_id=clusters.assign(turn.observation)) for turn in episode.turns)
        )
        for episode in episodes
    ]


def link_answers(clusters: Clusters, episodes: Iterable[Episode], seen: Experience) -> None:
    """Link the entries that an observation found in the whole library to its cluster (SLEA-RL Eq. 2)."""
    if not isinstance(seen, Retrieved):
        return
    for episode in episodes:
        for turn in episode.turns:
            hits = seen.answers["step"].get((seen.index.key(episode.task), turn.observation), [])
            clusters.link(turn.cluster_id, [hit.entry.id for hit in hits])
