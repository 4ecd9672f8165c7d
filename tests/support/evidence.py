"""A writer's evidence, made of a few episodes."""

from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.writer import Evidence, nobody
from coevo.records.task import BY_SCOPE


def evidence(episodes, held=(), stats=None, references=(), revision=1, key=BY_SCOPE, clusters=None, ask=nobody):
    return Evidence(episodes, Library(held, stats, clusters), References(key, 8, references), revision, ask)
