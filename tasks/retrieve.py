"""Retrieval: what of the bank each task sees (CoEvo-RL Eq. 2)."""

from collections.abc import Iterable, Mapping, Sequence

from memory.index import Index
from records.draws import Key, extend, generator
from records.entry import Entry
from records.task import Task

Context = Mapping[str, tuple[Entry, ...]]
"""The entries that each task sees, best first, by task id."""


def retrieve(index: Index | None, tasks: Iterable[Task]) -> Context:
    """The entries for each task; none where there is no bank."""
    if index is None:
        return {task.id: () for task in tasks}
    return {task.id: tuple(hit.entry for hit in index.search(task.instruction, task.scope)) for task in tasks}


def at_random(entries: Sequence[Entry], count: int, tasks: Iterable[Task], key: Key) -> Context:
    """``count`` entries drawn for each task without looking at it: what retrieval is worth shows beside this."""
    count = min(count, len(entries))
    return {
        task.id: tuple(entries[i] for i in generator(extend(key, task.id)).choice(len(entries), count, replace=False))
        for task in tasks
    }
