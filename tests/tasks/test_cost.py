"""Expenses of a run, on histories worked out by hand."""

import re
from pathlib import Path

import pytest

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import OF_PART, PARALLEL, Spent, spending, time_by_part, time_line, wall_seconds


def revision(number, restored=None, seconds=None, **metrics):
    named = {name.replace("_", "/"): value for name, value in metrics.items()}
    state = {"revision": number, "parent": number - 1 if number else None, "restored_from": restored, "metrics": named}
    return Manifest(
        state, {"metrics": {f"cost/seconds/{name.replace('_', ' ')}": s for name, s in (seconds or {}).items()}}
    )


def at(manifest, number, timestamp):
    """The same with another number, made at another time."""
    return Manifest(
        {**manifest.state, "revision": number, "parent": number - 1}, {**manifest.observed, "timestamp": timestamp}
    )


START = revision(0, seconds={"evaluate": 9.0, "wall": 9.0})
PLAYED = {"cost_episodes": 4.0, "cost_tokens": 100.0}


def test_evaluation_and_the_start_cost_nothing():
    one = revision(1, seconds={"rollout": 1.0, "evaluate": 5.0, "gate_panels": 1.0, "wall": 8.0}, **PLAYED)
    assert spending([START, one, one]) == [Spent(), Spent(4, 100, 1.0), Spent(8, 200, 2.0)]


def test_a_rollback_costs_nothing_and_takes_nothing_back():
    history = [START, revision(1, **PLAYED), revision(2, restored=0), revision(3, restored=1, **PLAYED)]
    assert [spent.episodes for spent in spending(history)] == [0, 4, 4, 4]


DAY = 86400
SESSION = revision(1, seconds={"preparation": 2.0, "rollout": 3.0, "evaluate": 4.0, "wall": 10.0}, **PLAYED)
"""Ten seconds, of which three are learning."""
HISTORIES = {
    "the start alone": ([START], 9, 0),
    "one iteration": ([START, SESSION], 19, 3),
    "resumed after a day": ([START, SESSION, at(SESSION, 2, DAY)], 29, 6),
    "resumed three times": ([START, *(at(SESSION, number, number * DAY) for number in (1, 2, 3))], 39, 9),
    "rolled back and continued": ([START, SESSION, revision(2, restored=0), at(SESSION, 3, DAY)], 29, 6),
    "rolled back alone": ([START, SESSION, revision(2, restored=0)], 19, 3),
    "lessons imported": ([START, SESSION, revision(2, bank_imported=3.0)], 19, 3),
    "published a day late": ([START, at(SESSION, 1, DAY), SESSION], 29, 6),
    "killed before its first revision": ([], 0, 0),
}
"""Revisions, their seconds, and those of learning."""


@pytest.mark.parametrize(("history", "wall", "learning"), HISTORIES.values(), ids=HISTORIES)
def test_seconds_are_those_of_processes_and_never_of_the_time_between_two(history, wall, learning):
    assert sum(time_by_part(history).values()) == sum(map(wall_seconds, history)) == wall
    assert time_line(history).partition(" s")[0] == str(wall)
    assert (spending(history) or [Spent()])[-1].seconds == learning


def test_an_import_costs_nothing():
    assert spending([START, revision(1, bank_imported=3.0, bank_size=3.0)])[-1] == Spent()


@pytest.mark.parametrize("field", ["approval", "retired"])
def test_a_change_by_a_person_costs_nothing(field):
    by_hand = revision(2, bank_size=3.0)
    by_hand.state[field] = {"by": "me"}
    assert [spent.episodes for spent in spending([START, revision(1, **PLAYED), by_hand, revision(3, **PLAYED)])] == [
        0, 4, 4, 8,
    ]  # fmt: skip


def test_what_one_revision_does_not_say_nobody_knows_from_there_on():
    history = [START, revision(1, **PLAYED), revision(2, seconds={"rollout": 1.0}), revision(3, **PLAYED)]
    assert [spent.tokens for spent in spending(history)] == [0, 100, None, None]
    assert spending(history)[-1].seconds == 1.0


def test_every_stage_has_its_part_and_the_parts_sum_to_the_wall_clock():
    root = Path(__file__).parents[2]
    sources = [path.read_text("utf-8") for room in ("tasks", "flows") for path in (root / room).rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'^@(?:stage|untracked)\("([^"]+)"', text, re.M)}
    assert len(named) > 15
    assert named | {"preparation"} == OF_PART.keys() | set(PARALLEL)
    seconds = {name.replace(" ", "_"): 1.0 for name in named}
    history = [revision(1, seconds=seconds | {"wall": 100.0}, **PLAYED)]
    assert sum(time_by_part(history).values()) == 100.0
    assert time_line(history).startswith("100 s: preparation 1, rollout 2, ")
