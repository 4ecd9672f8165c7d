"""Eq. 7 with values worked out by hand."""

import pytest

from configs.bank import ReplayAdmissionConfig
from memory.admission import judge
from records.entry import Entry, entry_id

CANDIDATES = [Entry(entry_id("", text), text, "", "", text, "", "train", ("1/r/t/0",), 3, 3) for text in ("a", "b")]


def verdict(rewards_with, rewards_without, delta=0.0, candidates=CANDIDATES):
    calls = []

    def replay(extra):
        calls.append(list(extra))
        return rewards_with if extra else rewards_without

    result = judge(candidates, replay, ReplayAdmissionConfig(delta=delta), 3)
    return result, calls


def test_worked_values():
    # Gains 1, 0, 1, 0: mean 1/2, sample variance 1/3, standard error sqrt(1/3) / 2.
    result, calls = verdict([1, 1, 1, 0], [0, 1, 0, 0])
    assert result.admitted
    assert (result.reward_with, result.reward_without, result.difference) == (0.75, 0.25, 0.5)
    assert result.stderr == pytest.approx((1 / 3) ** 0.5 / 2)
    assert (result.pairs, result.delta, result.revision) == (4, 0.0, 3)
    assert result.candidates == tuple(entry.id for entry in CANDIDATES)
    assert result.inside_noise
    assert calls == [CANDIDATES, []]


@pytest.mark.parametrize(
    ("rewards_with", "rewards_without", "delta", "admitted"),
    [
        ([1, 0], [0, 1], 0.0, False),
        ([1, 0], [1, 0], 0.0, False),
        ([0, 0], [1, 0], 0.0, False),
        ([1, 0], [0, 0], 0.5, False),
        ([1, 1], [0, 0], 0.5, True),
        ([1, 0], [1, 0], -0.1, True),
        ([0.1 + 0.2, 0.3], [0.3, 0.3], 0.0, False),
    ],
)
def test_the_gain_must_exceed_delta(rewards_with, rewards_without, delta, admitted):
    assert verdict(rewards_with, rewards_without, delta)[0].admitted is admitted


def test_a_single_pair_has_no_error_and_equal_gains_have_none():
    assert verdict([1], [0])[0].stderr == 0.0
    assert verdict([1, 1, 1], [0, 0, 0])[0].stderr == 0.0


def test_without_candidates_nothing_is_replayed():
    assert verdict([1], [0], candidates=[]) == (None, [])


@pytest.mark.parametrize("rewards", [([1, 0], [1]), ([], [])])
def test_sides_that_do_not_pair_are_an_error(rewards):
    with pytest.raises(ValueError, match="do not pair"):
        verdict(*rewards)
