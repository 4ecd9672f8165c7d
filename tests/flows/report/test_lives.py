"""Gain of an entry against the other episodes of its revision and kind, worked out by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from support.small_run import HEAT, MICROWAVE, MUG, SAFE, entry, episodes

from coevo.flows.report.lives import extremes, lives
from coevo.records.arrow import episodes_to_table
from coevo.records.task import Task

COOL = Task("homerules", "cool", "house lotus . task cool mug", "lotus", "train", {"n": 2})


def table(*played):
    return episodes_to_table([episode for batch in played for episode in batch])


def test_success_beside_that_of_the_others():
    # Of four episodes the first two are solved; the entry was shown in the first and in the third.
    played = [
        each if number % 2 else seen
        for number, (each, seen) in enumerate(zip(episodes(1), episodes(1, (MUG,)), strict=True))
    ]
    life = lives([MUG, MICROWAVE], [table(played)])[MUG.id]
    assert (life.uses, life.shown, life.solved) == ({1: (2, 1)}, 2, 1)
    # The other two: one of two solved, as with it.
    assert life.gain == 0.0
    # Variance n p (1 - p) N / (N - n) = 2 * 1/4 * 4 / 2.
    assert life.variance == 1.0
    assert life.interval == pytest.approx((-1.96, 1.96))


def test_kinds_of_tasks_and_revisions_are_apart():
    shown = [replace(each, task=COOL) for each in episodes(1, (MUG,))[:1]]
    bare = [replace(each, task=COOL) for each in episodes(1)[2:]]
    found = lives([MUG], [table(shown, bare, episodes(1)), table(episodes(2, (MUG,))[2:], episodes(2)[:2])])[MUG.id]
    assert found.uses == {1: (1, 1), 2: (2, 0)}
    # Against none of two coolings in revision 1, and two of two heatings in revision 2.
    assert found.gain == 1.0 - 2.0


def test_an_entry_that_everybody_saw_has_gained_nothing():
    life = lives([MUG], [table(episodes(1, (MUG,)))])[MUG.id]
    assert (life.shown, life.solved, life.gain, life.variance) == (4, 2, 0.0, 0.0)


def test_the_episodes_of_a_task_are_one_observation():
    # Two tasks of one kind, of two episodes each: the entry was shown in the one that succeeds. Residuals are +-1/2, a
    # task's part of the gain is 2 - 1 and 0 + 1; the sum of squares, 2, times 2 / (2 - 1) tasks.
    other = replace(episodes(1)[0].task, data={"n": 2})
    played = [*episodes(1, (MUG,))[:2], *(replace(each, task=other) for each in episodes(1)[2:])]
    life = lives([MUG], [table(played)])[MUG.id]
    assert (life.gain, life.variance) == (2.0, 4.0)


def test_an_entry_without_effect_is_found_out_one_time_in_twenty():
    """Tasks of a group are easy or impossible: with episodes taken as independent, it would be every other time."""
    random, names = np.random.default_rng(0), [f"lesson {number}" for number in range(100)]
    held = [entry(name, "mug", "go safe") for name in names]
    rows = []
    for revision, task in product(range(40), range(8)):
        shown = [each.id for each in held if random.random() < 0.5]
        turns = [{"retrieved": shown}]
        row = {"revision": revision, "kind": "k", "task_id": f"{task}", "success": bool(random.random() < 0.5)}
        rows += [{**row, "turns": turns}] * 8
    found = lives(held, [pa.Table.from_pylist(rows)])
    outside = [not low <= 0 <= high for low, high in (life.interval for life in found.values())]
    assert len(outside) == 100
    assert 0 < sum(outside) <= 12


def test_best_and_worst_are_told_apart():
    found = lives([MUG, MICROWAVE], [table(episodes(1, (MUG,))[:2], episodes(1, (MICROWAVE,))[2:])])
    useful, harmful = extremes(found, 10)
    assert [(life.entry.strategy, life.gain) for life in useful] == [(SAFE, 2.0)]
    assert [(life.entry.strategy, life.gain) for life in harmful] == [(HEAT, -2.0)]


def test_without_episodes_there_are_entries_all_the_same():
    assert [life.shown for life in lives([MUG], [table([])]).values()] == [0]
