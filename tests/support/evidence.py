"""What a writer sees, made of a few episodes."""

from memory.library import Library
from memory.references import References
from memory.writers.base import Evidence
from records.task import BY_SCOPE


def evidence(episodes, held=(), stats=None, references=(), revision=1, key=BY_SCOPE, clusters=None):
    return Evidence(episodes, Library(held, stats, clusters), References(key, 8, references), revision)
