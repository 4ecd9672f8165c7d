"""Examination of an author: the lessons that it writes in a world that it was not trained on."""

from dataclasses import dataclass
from functools import partial

from coevo.envs.base import Environment
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.base import Evidence, Writer
from coevo.models.authors.base import Author, in_order
from coevo.records.draws import Key, extend
from coevo.records.task import BY_SCOPE
from coevo.tasks.writing.teacher import episode

TASKS, REPLICAS = 32, 2
"""Tasks of the examination, and episodes of each task."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Result of an examination in a world that was not trained on.

    Attributes:
        proposed: number of lessons that the author wrote.
        true: number of them that are true notes of the world.
        revealed: number of true notes that the episodes reveal.
    """

    proposed: int
    true: int
    revealed: int


def examine(env: Environment[object], writer: Writer, author: Author, draw: Key) -> Grade:
    """Compare the lessons that an author writes in another world with its true notes."""
    played = [
        episode(env, task, replica, extend(draw, task.id, replica))
        for task in env.probe(TASKS, draw).tasks
        for replica in range(REPLICAS)
    ]
    evidence = Evidence(played, Library(()), References(BY_SCOPE, 0), 0, partial(in_order, author))
    said = {entry.strategy for entry in writer.write(evidence).entries}
    true = {found.note for each in played for found in env.revealed(each)}
    return Grade(len(said), len(said & true), len(true))
