"""Tasks that the bank's entries were written from, as a run keeps them for ``evaluation.retrieval``."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from json import dumps

from pydantic import ConfigDict, with_config

from coevo.memory.validate import listed
from coevo.records.entry import Entry
from coevo.records.task import About


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class SourceTask:
    """Fields of a training task that retrieval needs, see ``coevo.records.task.Task``."""

    id: str
    kind: str
    instruction: str
    scope: str

    @classmethod
    def of(cls, task: About) -> "SourceTask":
        """Copy them from a task."""
        return cls(task.id, task.kind, task.instruction, task.scope)


def by_source(tasks: Mapping[str, SourceTask], entries: Iterable[Entry]) -> dict[str, SourceTask]:
    """Known tasks of the entries' source episodes, by the ids of these, in the order of the ids.

    Args:
        tasks: tasks by their ids.
        entries: whose sources are ids of episodes, see ``coevo.records.episode.Episode.name``.
    """
    sources = sorted({source for entry in entries for source in entry.sources})
    found = ((source, tasks.get(_task(source))) for source in sources)
    return {source: task for source, task in found if task is not None}


def text(tasks: Iterable[SourceTask]) -> str:
    """Canonical JSON, by id."""
    each = {task.id: task for task in tasks}
    return dumps([asdict(each[name]) for name in sorted(each)], sort_keys=True, indent=0, ensure_ascii=False)


def parse(lines: str) -> dict[str, SourceTask]:
    """Parse the output of ``text``; a pulled run may hold anything.

    Raises:
        CoevoError: it has another form.
    """
    return {each.id: each for each in listed(SourceTask, lines, "source tasks")}


def _task(source: str) -> str:
    """Task in the id of an episode; empty if it is none."""
    return source.split("/")[-2] if source.count("/") >= 2 else ""
