"""Paired differences of two evaluations."""

import pytest

from coevo.flows.evaluation.comparison import differences_of
from coevo.flows.evaluation.comparison_side import Evaluated, Side
from coevo.records.intervals import paired_success
from coevo.tasks.cost import Spent


def side(name, outcomes):
    sound = outcomes.replace("-", "")
    at_end = Evaluated(3, "far", "hash", sound.count("1") / len(sound), None, outcomes, Spent(0, 0, 0.0))
    return Side(name, f"{name}@3", {}, (at_end,), (at_end,))


@pytest.mark.parametrize(
    ("one", "first", "ours", "theirs"),
    [
        ("11-01", "0101-", [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]),
        # The rates differ by 0.5, and the two tasks that both sides played by 1.
        ("11--", "0011", [1.0, 1.0], [0.0, 0.0]),
    ],
)
def test_tasks_that_either_side_lost_are_left_out(one, first, ours, theirs):
    found, gain = next(differences_of(side("one", one), side("first", first))), paired_success(ours, theirs)
    assert [found.difference, found.low, found.high] == pytest.approx([gain.mean, gain.low, gain.high])
    assert found.tasks == len(ours)


def test_without_common_tasks_the_rates_are_subtracted():
    found = next(differences_of(side("one", "1--"), side("first", "-01")))
    assert (found.difference, found.low, found.high, found.tasks) == (0.5, None, None, None)
