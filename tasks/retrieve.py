"""Retrieval: what of the bank a task and an observation see (CoEvo-RL Eq. 2, SLEA-RL section 3.3)."""

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Protocol

from configs.bank import BankConfig
from configs.retrieval import AnyRetrievalConfig, ClusterRetrievalConfig
from configs.run import RunConfig
from memory.clusters import Clusters
from memory.index import Hit, Index
from memory.plain import Readable
from records.draws import Key, extend, generator
from records.entry import Entry
from records.task import About, Task, key_by

Entries = tuple[Entry, ...]


class Experience(Protocol):
    """What attempts are shown."""

    def of_task(self, task: About) -> Entries:
        """Entries for the whole episode, best first."""
        ...

    def of_step(self, task: About, observation: str) -> Entries:
        """Entries for one turn, best first."""
        ...


class Given:
    """The same entries for every turn of a task, by its id; none for other tasks."""

    def __init__(self, entries: Mapping[str, Entries]) -> None:
        self._entries = entries

    def of_task(self, task: About) -> Entries:
        """What was given for the task."""
        return self._entries.get(task.id, ())

    def of_step(self, task: About, observation: str) -> Entries:
        """Nothing more."""
        return ()


NOTHING = Given({})
"""No experience at all."""


class Retrieved:
    """What one version of the bank answers; a question is asked once, however many attempts have it.

    Attributes:
        index: what is asked.
        answers: hits by scope and text of the question, those of instructions and of observations apart.
        seconds: spent on asking.
    """

    def __init__(self, index: Index, draw: Key) -> None:
        self.index = index
        self.answers: dict[str, dict[tuple[str, str], list[Hit]]] = {"task": {}, "step": {}}
        self.seconds = 0.0
        self._draw = draw
        self._tally, self._parts = dict(index.tally), dict(index.seconds)

    def of_task(self, task: About) -> Entries:
        """What the instruction finds, unless only observations are asked for."""
        return self._ask("task", task.instruction, self.index.key(task)) if self.index.config.per != "step" else ()

    def of_step(self, task: About, observation: str) -> Entries:
        """What the observation finds, unless only instructions are asked for."""
        if self.index.config.per == "task":
            return ()
        return self._ask("step", step_query(task, observation, self.index.config), self.index.key(task))

    def tally(self) -> dict[str, int]:
        """What the scorer has counted since the first question."""
        return {what: count - self._tally.get(what, 0) for what, count in self.index.tally.items()}

    def parts(self) -> dict[str, float]:
        """Seconds of parts of the scorer's own since then."""
        return {part: spent - self._parts.get(part, 0.0) for part, spent in self.index.seconds.items()}

    def _ask(self, what: str, text: str, scope: str) -> Entries:
        answers = self.answers[what]
        if (scope, text) not in answers:
            since = perf_counter()
            answers[scope, text] = self.index.search(text, scope, extend(self._draw, what, scope, text))
            self.seconds += perf_counter() - since
        return tuple(hit.entry for hit in answers[scope, text])


def step_query(task: About, observation: str, config: AnyRetrievalConfig) -> str:
    """What is asked at a turn."""
    if isinstance(config, ClusterRetrievalConfig) or config.step_query == "observation":
        return observation
    return f"{task.instruction} . {observation}"


def recall(index: Index | None, draw: Key) -> Experience:
    """The answers of an index, ``draw`` deciding what it leaves to chance; nothing where there is none."""
    return NOTHING if index is None else Retrieved(index, draw)


def at_random(entries: Sequence[Entry], count: int, tasks: Iterable[Task], key: Key) -> Experience:
    """``count`` entries drawn for each task without looking at it: what retrieval is worth shows beside this."""
    count = min(count, len(entries))
    return Given(
        {
            task.id: tuple(
                entries[i] for i in generator(extend(key, task.id)).choice(len(entries), count, replace=False)
            )
            for task in tasks
        }
    )


def index_of(bank: Readable, config: RunConfig, clusters: Clusters | None = None) -> Index:
    """An index over a bank as it stands, with the settings of a run; the usual ones where the run has no bank.

    ``clusters`` are those of the bank, where they are at hand already.
    """
    if clusters is None and config.clusters is not None:
        clusters = Clusters(config.clusters, bank.clusters())
    settings = config.bank or BankConfig()
    return Index(bank.active(), settings.retrieval, bank.stats(), clusters, key=key_by(settings.key))


def is_shown(config: AnyRetrievalConfig, iterations: int, entries: int) -> bool:
    """Whether the gates are open: enough iterations were played, and the bank is large enough."""
    return iterations >= config.warmup and entries > config.min_entries


def sees(config: AnyRetrievalConfig, replica: int, group: int) -> bool:
    """Whether a rollout of a training group is among the first ones, which see the bank."""
    return replica < round(config.share * group)
