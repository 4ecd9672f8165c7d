"""Examination of an author: the lessons that it writes in a world that it was not trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from coevo.envs.base import Environment
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.writer import AskFunction, Evidence, Writer
from coevo.models.authors.author import Author, in_order, room_of
from coevo.records.draws import Key, extend
from coevo.records.task import BY_SCOPE
from coevo.records.writing import Question, Reply
from coevo.tasks.writing.teacher import episode

TASKS, REPLICAS = 32, 2
"""Tasks of the examination, and episodes of each task."""
NONE = References(BY_SCOPE, 0)


@dataclass(frozen=True, slots=True)
class Grade:
    """Result of an examination in a world that was not trained on.

    Attributes:
        proposed: number of lessons that the author wrote.
        true: number of them that are true notes of the world.
        revealed: number of true notes that the episodes of the questions reveal.
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
    shown = set[str]()

    def ask(questions: Sequence[Question]) -> list[Reply]:
        shown.update(name for question in questions for name in question.episodes)
        return in_order(author, questions)

    evidence = Evidence(played, Library(()), NONE, 0, AskFunction(ask, partial(room_of, author)))
    said = {entry.strategy for entry in writer.write(evidence).entries}
    # A writer does not ask about every episode.
    true = {found.note for each in played if each.id in shown for found in env.revealed(each)}
    return Grade(len(said), len(said & true), len(true))
