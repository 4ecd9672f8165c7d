"""Rewards against values worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import episode, turn
from support.outside import built_in

from coevo.configs.update.reward_config import (
    CapabilityEvolutionConfig,
    DiscountedConfig,
    ExtrinsicConfig,
    ProgressGuidedConfig,
    RewardConfig,
)
from coevo.models.rewards import reward, unrewarded
from coevo.utilities.errors import CoevoError

KINDS = [kind(type=kind.model_fields["type"].annotation.__args__[0]) for kind in built_in(RewardConfig)]
CAPABILITY = CapabilityEvolutionConfig(type="capability-evolution", gamma=0.5)


def played(number=0, rewards=(0.0, 1.0), valid=None, **changes):
    valid = [True] * len(rewards) if valid is None else valid
    turns = tuple(turn(reward=value, valid=understood) for value, understood in zip(rewards, valid, strict=True))
    return replace(episode(number, turns=turns), **changes)


def worth(episodes, config, penalty=0.0, baselines=None):
    """Returns, and everything else."""
    rewards = reward(episodes, penalty, config, baselines or {})
    return [one.reward + extra for one, extra in zip(episodes, rewards.shaping, strict=True)], rewards


def test_extrinsic_is_the_plain_sum_less_the_penalties_of_their_turns():
    returns, rewards = worth([played(rewards=(0.0, 0.25, 1.0), valid=(False, True, False))], ExtrinsicConfig(), 0.05)
    assert returns == pytest.approx([1.15])
    np.testing.assert_allclose(rewards.turns[0], [-0.05, 0.25, 0.95])
    assert rewards.metrics == {}


@pytest.mark.parametrize(
    ("spread", "turns", "value"),
    [("as-given", [0.0, 0.0, 0.9], 0.225), ("uniform", [0.3] * 3, 0.3 + 0.15 + 0.075)],
)
def test_discounted(spread, turns, value):
    config = DiscountedConfig(type="discounted", gamma=0.5, spread=spread)
    returns, rewards = worth([played(rewards=(0.0, 0.0, 0.9))], config)
    assert returns == pytest.approx([value])
    np.testing.assert_allclose(rewards.turns[0], turns)
    assert rewards.metrics == {"policy/reward/discount": pytest.approx(0.9 - value)}


def test_a_penalty_is_discounted_with_its_turn():
    config = DiscountedConfig(type="discounted", gamma=0.5)
    returns, _ = worth([played(rewards=(0.0, 0.0, 1.0), valid=(True, False, True))], config, 0.2)
    assert returns == pytest.approx([0.25 - 0.1])


def test_capability_evolution_rewards_progress_beyond_the_baseline_then_raises_it():
    group = [
        played(rewards=(0.0, 1.0), success=True, progress=1.0),
        played(rewards=(0.0, 0.0), success=False, progress=0.5),
        played(rewards=(0.0, 0.0), success=False, progress=0.1),
    ]
    name = group[0].task.id
    returns, rewards = worth(group, CAPABILITY, baselines={name: 0.2, "elsewhere": 0.9})
    # Intrinsic .8, .3, 0; totals 1.8, .3, 0 in halves; discounted with .5 a total's share is 3/4.
    assert returns == pytest.approx([1.35, 0.225, 0.0])
    np.testing.assert_allclose(rewards.turns[0], [0.9, 0.9])
    assert rewards.baselines == {name: pytest.approx(1 / 3), "elsewhere": 0.9}
    assert rewards.metrics["policy/reward/baseline"] == pytest.approx((1 / 3 + 0.9) / 2)
    assert rewards.metrics["policy/reward/intrinsic"] == pytest.approx(1.1 / 3)
    assert rewards.metrics["policy/reward/intrinsic_share"] == pytest.approx(2 / 3)


def test_baselines_never_fall_and_belong_to_their_task():
    first = [played(number, success=bool(number), progress=0.0) for number in (0, 1)]
    _, rewards = worth(first, CAPABILITY)
    assert rewards.baselines == {first[0].task.id: 0.0, first[1].task.id: 1.0}
    again = [replace(one, success=False) for one in first]
    assert worth(again, CAPABILITY, baselines=rewards.baselines)[1].baselines == rewards.baselines


@pytest.mark.parametrize("kind", [CAPABILITY, ProgressGuidedConfig(type="progress-guided", gamma=0.5)])
def test_progress_that_exceeds_the_baseline_by_rounding_is_no_gain(kind):
    progress, below = 1.0, float(np.nextafter(1.0, 0.0))
    episode = played(rewards=(0.0,), success=True, progress=progress)
    _, rewards = worth([episode], kind, baselines={episode.task.id: below})
    assert rewards.shaping.tolist() == [0.0]


def test_a_task_without_a_baseline_starts_at_zero():
    returns, rewards = worth([played(rewards=(0.0,), success=False, progress=0.25)], CAPABILITY)
    assert returns == [0.25]
    assert rewards.metrics == {
        "policy/reward/intrinsic": 0.25,
        "policy/reward/intrinsic_share": 1.0,
        "policy/reward/baseline": 0.0,
    }


def test_progress_guided_takes_success_for_progress():
    group = [played(success=True, progress=None), played(rewards=(0.0, 0.0), success=False, progress=None)]
    returns, rewards = worth(
        group, ProgressGuidedConfig(type="progress-guided", gamma=1.0), baselines={group[0].task.id: 0.25}
    )
    assert returns == pytest.approx([1.75, 0.0])
    assert rewards.baselines == {group[0].task.id: 0.5}
    assert rewards.metrics == {"policy/reward/guided": pytest.approx(0.375)}


def test_an_environment_without_progress_is_named():
    with pytest.raises(CoevoError, match=r"e reports no progress.*set update\.reward\.type=progress-guided"):
        worth([played(progress=None)], CAPABILITY)


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.type)
@given(
    drawn=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(1, 4)), min_size=1, max_size=8),
    random=st.randoms(use_true_random=False),
)
def test_order_does_not_matter_and_every_turn_is_rewarded(config, drawn, random):
    episodes = [
        played(number, (*[0.0] * (length - 1), float(won)), success=won, progress=float(won))
        for number, won, length in drawn
    ]
    order = list(range(len(episodes)))
    random.shuffle(order)
    straight, shuffled = worth(episodes, config, 0.1)[1], worth([episodes[i] for i in order], config, 0.1)[1]
    assert [len(turns) for turns in straight.turns] == [length for _, _, length in drawn]
    np.testing.assert_allclose(shuffled.shaping, straight.shaping[order], atol=1e-12)
    assert shuffled.baselines == straight.baselines


def test_each_kind_leaves_a_figure_that_only_it_leaves():
    figures = [set(worth([played(progress=1.0)], config)[1].metrics) for config in KINDS]
    assert figures[0] == set()
    assert all(figures[1:])
    assert sum(map(len, figures)) == len(set.union(*figures))


WON, LOST = True, False


@pytest.mark.parametrize(
    ("bounds", "outcomes", "count"),
    [
        # harmful: success earns nothing that failure does not
        ((0, 1), [(WON, 0.0), (LOST, 0.0)], 1),
        ((0, 1), [(WON, 0.0), (WON, 0.0)], 2),
        ((0, 1), [(WON, 0.0), (LOST, 0.3)], 1),
        ((0, 1), [(WON, 1.0), (LOST, 1.0)], 1),
        ((-1, 1), [(WON, -1.0), (LOST, 0.0)], 1),
        ((-1, 1), [(WON, 0.0), (WON, 0.0)], 2),
        ((-1, 1), [(WON, 0.0), (LOST, -0.1), (LOST, 0.0)], 1),
        ((-50, 0), [(WON, -50.0)], 1),
        ((-50, 0), [(WON, -20.0), (WON, -9.0), (LOST, -3.0)], 2),
        # healthy
        ((0, 1), [], 0),
        ((0, 1), [(LOST, 0.0), (LOST, 0.0)], 0),
        ((0, 1), [(WON, 1.0), (LOST, 0.0)], 0),
        ((0, 1), [(WON, 1.0), (WON, 1.0)], 0),
        ((0, 1), [(WON, 0.0), (WON, 1.0), (LOST, 0.0)], 0),
        ((-1, 1), [(WON, 0.0), (LOST, -1.0)], 0),
        ((-1, 1), [(WON, 0.2), (LOST, 0.9), (LOST, 0.0)], 0),
        ((-50, 0), [(WON, -5.0), (WON, -20.0), (LOST, -50.0)], 0),
        ((-50, 0), [(WON, -5.0), (WON, -20.0)], 0),
        ((0, 100), [(WON, 40.0), (LOST, 50.0), (LOST, 30.0)], 0),
    ],
)
def test_success_is_worth_something_or_it_is_counted(bounds, outcomes, count):
    assert unrewarded(outcomes, bounds) == count
