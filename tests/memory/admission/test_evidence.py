"""Bounds over all looks of a life: worked values, the theory's bounds in simulation, and the power that is promised."""

from math import log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.configs.bank.bank_config import RetirementConfig
from coevo.configs.load.load import load_recipe
from coevo.memory.admission.evidence import BETS, log_capital, lower_bound, upper_bound
from coevo.memory.admission.replay import ROUND, PairedRewards, measured
from coevo.tasks.steps.retire import MARGIN

ALL = log(20)
LIVES = 500
DELTA = RetirementConfig().delta
REPLAYS = load_recipe("homerules-coevo-rl").bank.admission.replays


def look(gains, revision=1):
    return measured((), PairedRewards(gains, [0.0] * len(gains)), 0.0, revision)


def test_worked_values():
    # One look of 16 gains of 1 has u = 2 throughout. Against a gain of 0 (u of 1), bets 1/8, 1/4 and 1/2 earn 9/8, 5/4
    # and 3/2 a pair. The first look has weight 6 / pi^2, a third for each bet; the rest of the capital stays 1.
    weight = 6 / pi**2
    capital = 1 - weight + weight * ((9 / 8) ** 16 + (5 / 4) ** 16 + (3 / 2) ** 16) / 3
    found = log_capital(np.array([16.0]), np.array([2.0]), np.array([4.0]), 1.0)
    assert found == pytest.approx(log(capital))
    # Two looks of one pair each, of gains 1 and -1: a bet on both loses, 1 + b times 1 - b; one on the second, 1 - b.
    second = weight / 4
    capital = 1 - weight - second + sum(weight * (1 - b * b) + second * (1 - b) for b in (1 / 8, 1 / 4, 1 / 2)) / 3
    found = log_capital(np.ones(2), np.array([2.0, 0.0]), np.array([4.0, 0.0]), 1.0)
    assert found == pytest.approx(log(capital))


def test_a_bound_is_where_the_capital_reaches_its_level():
    # Against u of c, 8 gains of 1 earn (1 - b + 2 b / c)^8; 1 / c is a little below .62 where the sum is 20.
    bound = lower_bound([look([1.0] * 8)], 0.95)
    weight = 6 / pi**2
    capital = 1 - weight + weight * sum((1 - b + 2 * b / (1 + bound)) ** 8 for b in (1 / 8, 1 / 4, 1 / 2)) / 3
    assert capital == pytest.approx(20)
    assert upper_bound([look([-1.0] * 8)], 0.95) == -bound
    assert (lower_bound([], 0.95), upper_bound([], 0.95)) == (-1.0, 1.0)


def test_a_bound_scales_with_the_rewards():
    gains = [0.5, -0.25, 1.0, 0.75, 0.0, 0.125, 0.5, 0.25] * 3
    wide = lower_bound([look([100 * gain for gain in gains])], 0.95, 100.0)
    assert wide == pytest.approx(100 * lower_bound([look(gains)], 0.95))


samples = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=40)


@given(samples, st.floats(-0.9, 0.9))
def test_a_sample_earns_at_least_what_its_moments_say(gains, least):
    u, c = np.array(gains) + 1, least + 1
    exact = np.log1p(-BETS + BETS * u[:, None] / c).sum(axis=0)
    weight = 6 / pi**2
    capital = np.log(1 - weight + weight * np.exp(exact).mean())
    found = look(gains)
    mean = found.difference + 1
    second = mean**2 + (found.pairs - 1) * found.stderr**2
    assert log_capital(np.array([len(gains)], float), np.array([mean]), np.array([second]), c) <= capital + 1e-6


@given(samples, st.sampled_from([0.75, 0.95, 0.99]))
def test_a_bound_lies_on_its_side_of_the_mean_and_tightens_with_more_of_the_same_pairs(gains, level):
    found, twice = look(gains), look([*gains, *gains])
    low, high = lower_bound([found], level), upper_bound([found], level)
    assert -1 <= low <= found.difference + 1e-9
    assert found.difference - 1e-9 <= high <= 1
    assert lower_bound([twice], level) >= low - 1e-9
    assert upper_bound([twice], level) <= high + 1e-9


KINDS = ("coupled", "independent", "opposed", "graded")


def gains(kind, mean, shape, draws):
    """Gains of pairs: of one sign only, of independent sides around a half, always -1 or 1, and of graded rewards.

    Rewards without the lesson of a ``kind`` that is a number are 1 with that probability, drawn independently.
    """
    if isinstance(kind, float):
        return (draws.random(shape) < kind + mean) * 1.0 - (draws.random(shape) < kind)
    if kind == "coupled":
        return np.sign(mean) * (draws.random(shape) < abs(mean))
    if kind == "independent":
        return (draws.random(shape) < (1 + mean) / 2) * 1.0 - (draws.random(shape) < (1 - mean) / 2)
    if kind == "opposed":
        return np.where(draws.random(shape) < (1 + mean) / 2, 1.0, -1.0)
    ours, theirs = (1 + mean) / 2, (1 - mean) / 2
    return draws.beta(4 * ours, 4 * theirs, shape) - draws.beta(4 * theirs, 4 * ours, shape)


def share(found, against, looks):
    """Share of lives whose capital reaches 20 at one of their looks, each after so many of all pairs."""
    u = found + 1
    reached = np.zeros(len(u), bool)
    for pairs, ends in looks:
        parts = np.split(u[:, :pairs], ends, axis=1)
        counts = np.array([part.shape[1] for part in parts], float)
        mean, second = (np.stack([(part**power).mean(axis=1) for part in parts], axis=1) for power in (1, 2))
        reached |= log_capital(np.broadcast_to(counts, mean.shape), mean, second, against + 1) >= ALL
    return reached.mean()


def retired(kind, mean, delta=DELTA, looks=20, pairs=32):
    """Share of entries with this gain that retire within so many looks."""
    found = gains(kind, mean, (LIVES, looks * pairs), np.random.default_rng([7, round(100 * mean) % 997, looks]))
    recent = found.reshape(LIVES, looks, pairs).mean(axis=2)
    late = np.zeros(LIVES, bool)
    for n in range(1, looks + 1):
        ends = range(pairs, n * pairs, pairs)
        u = 1 - found[:, : n * pairs]
        parts = np.split(u, ends, axis=1)
        mean_u, second = (np.stack([(part**power).mean(axis=1) for part in parts], axis=1) for power in (1, 2))
        capital = log_capital(np.full(mean_u.shape, float(pairs)), mean_u, second, 1 - delta - MARGIN)
        late |= (capital >= ALL) & (recent[:, n - 1] <= delta)
    return late.mean()


def entered(kind, mean, firings=3, replays=REPLAYS, early=True):
    """Share of lessons with this gain that enter within so many firings, looked at after every round."""
    found = gains(kind, mean, (LIVES, firings * replays), np.random.default_rng([8, round(100 * mean) % 997, firings]))
    step = ROUND if early else replays
    looks = [(pairs, range(replays, pairs, replays)) for pairs in range(step, firings * replays + 1, step)]
    return share(found, 0.0, looks)


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_is_worth_its_place_seldom_retires_however_often_it_is_measured(kind):
    assert retired(kind, DELTA + 0.1) <= 0.05
    assert retired(kind, 0.1, delta=0.0) <= 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_without_gain_retires_and_a_harmful_one_more_surely(kind):
    assert DELTA > 0
    assert retired(kind, 0.0) >= 0.8
    assert retired(kind, -0.1) >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_a_useless_lesson_seldom_enters_however_often_it_is_proposed(kind):
    assert entered(kind, 0.0, firings=3) <= 0.05
    assert entered(kind, 0.0, firings=40, replays=8) <= 0.05


@pytest.mark.parametrize("kind", ["coupled", "independent", "graded"])
def test_a_lesson_of_some_gain_enters_within_three_firings(kind):
    assert entered(kind, 0.2) >= 0.8
    assert entered(kind, 0.3) >= 0.95


@pytest.mark.parametrize("without", [0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75])
def test_uncoupled_replays_find_a_gain_and_no_gain_wherever_success_begins(without):
    assert entered(without, 0.2) >= 0.8
    assert entered(without, 0.0) <= 0.05
    assert entered(without, 0.0, firings=40, replays=8) <= 0.05


def test_pairs_that_always_end_opposite_need_more_replays():
    """Twice the variance of independent sides, and the most that rewards within bounds have."""
    assert 0.5 <= entered("opposed", 0.2) < 0.8
    assert entered("opposed", 0.2, replays=112) >= 0.8
    assert entered("opposed", 0.0, replays=112) <= 0.05


def test_evidence_of_a_life_does_not_outweigh_a_change():
    """Thirty looks with a gain of .5, then three with harm: these suffice."""
    draws = np.random.default_rng(9)
    before = [look(gains("coupled", 0.5, 32, draws), n) for n in range(30)]
    after = [look(gains("coupled", -0.3, 32, draws), 30 + n) for n in range(3)]
    assert upper_bound(before, 0.95) > 0.4
    assert upper_bound(before + after, 0.95) < DELTA + MARGIN
