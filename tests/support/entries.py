"""Entries and libraries for tests of retrieval, and scores that are given."""

import numpy as np

from coevo.memory.stats import Stats
from coevo.records.draws import generator, key
from coevo.records.entry import Entry, entry_id

WORDS = [f"w{i}" for i in range(40)]


def entry(strategy, condition="", example="", keywords="", scope="", edited=1, zone="strategy"):
    name = entry_id(scope, strategy)
    return Entry(name, strategy, condition, example, keywords, scope, "train", ("1/r/t/0",), 1, edited, zone=zone)


def text(draws, low, high):
    return " ".join(draws.choice(WORDS, draws.integers(low, high)))


def bank(count, seed=0, scopes=("",)):
    """Random entries, no two of them alike, and random counters of them."""
    draws = generator(key(seed, "bank"))
    entries = [
        entry(
            f"{text(draws, 1, 8)} n{n}",
            text(draws, 0, 3),
            text(draws, 0, 3),
            text(draws, 1, 4),
            scope=scopes[n % len(scopes)],
            edited=int(draws.integers(1, 4)),
            zone=("strategy", "warning")[int(draws.random() < 0.3)],
        )
        for n in range(count)
    ]
    stats = {e.id: Stats(e.id, utility=float(draws.random()), visits=int(draws.integers(1, 9))) for e in entries}
    return entries, stats


def questions(count, seed=1):
    draws = generator(key(seed, "questions"))
    return [text(draws, 1, 12) + " unknown" for _ in range(count)]


def ranked(scores, k):
    """The plain way: by score, then later edit, then lower id; scores are by entry."""
    order = sorted(scores, key=lambda e: (-round(scores[e], 12), -e.edited, e.id))
    return [e.id for e in order[:k]]


class Fixed:
    """Scores that are what they are."""

    def __init__(self, *scores):
        self._scores = np.array(scores, float)

    def fit(self, library):
        return lambda question: self._scores[question.rows]


class Asked:
    """A question about so many entries."""

    def __init__(self, rows):
        self.rows = np.arange(rows)
