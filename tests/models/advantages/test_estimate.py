"""Properties of every estimator, whatever the groups and however long the episodes."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outside import built_in
from support.trajectories import SHAPES, batches, group, trajectory

from coevo.configs.update.advantage_config import AdvantageConfig
from coevo.models.advantages import estimate

KINDS = built_in(AdvantageConfig)
UNDISCOUNTED = {"gamma": 1.0, "gamma_step": 1.0, "lambda_step": 1.0, "whiten": False}


def made(kind, **settings):
    known = {name: value for name, value in settings.items() if name in kind.model_fields}
    return kind(type=kind.model_fields["type"].annotation.__args__[0], **known)


CONFIGS = [made(kind) for kind in KINDS]
FAIR = [made(kind, **UNDISCOUNTED) for kind in KINDS]
"""Without a discount, which knows the length of an episode and is meant to."""
each = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.type)


def check_advantages(made, rows):
    """Every token has a finite one, and centred means centred."""
    assert [len(values) for values in made.tokens] == [row.tokens for row in rows]
    assert all(np.isfinite(values).all() for values in made.tokens)
    for name in {row.group for row in rows} if made.centred else ():
        assert abs(made.episodes[[row.group == name for row in rows]].mean()) < 1e-9


@each
@given(rows=batches(), random=st.randoms(use_true_random=False), lengths=SHAPES)
def test_order_and_other_groups_do_not_matter_but_for_what_is_taken_over_the_batch(config, rows, random, lengths):
    order = list(range(len(rows)))
    random.shuffle(order)
    straight, shuffled = estimate(rows, config), estimate([rows[index] for index in order], config)
    check_advantages(straight, rows)
    np.testing.assert_allclose(shuffled.episodes, straight.episodes[order], atol=1e-6)
    assert (shuffled.used == straight.used[order]).all()
    for place, index in enumerate(order):
        np.testing.assert_allclose(shuffled.tokens[place], straight.tokens[index], atol=1e-6)
    if config.type not in ("reinforce", "gae"):
        more = [trajectory(value, "other", tuple(lengths)) for value in (0.0, 1.0, 1.0)]
        beside = estimate([*more, *rows], config).tokens[3:]
        for values, same in zip(straight.tokens, beside, strict=True):
            np.testing.assert_array_equal(values, same)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "drop_zero_variance" in kind.model_fields])
@pytest.mark.parametrize(("drop", "used"), [(True, [False, False, True, True]), (False, [True] * 4)])
def test_groups_that_teach_nothing_are_left_out_on_request(kind, drop, used):
    rows = [*group([1.0, 1.0], group="flat"), *group([2.0, 0.0], group="differ")]  # by Dr. GRPO 0, 0, 1 and -1
    assert estimate(rows, made(kind, drop_zero_variance=drop)).used.tolist() == used


@each
def test_no_episodes_at_all(config):
    made = estimate([], config)
    assert (len(made.episodes), made.tokens, made.used.tolist()) == (0, [], [])
    assert set(made.metrics.values()) <= {0.0}
    assert made.centred is config.grouped


@pytest.mark.parametrize("config", FAIR, ids=lambda config: config.type)
@given(
    shapes=st.lists(SHAPES, min_size=2, max_size=4),
    returns=st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4),
)
def test_rewards_that_say_nothing_mean_nothing_at_any_length(config, shapes, returns):
    """Every way of handing the same returns to the same episodes is as likely: each token's mean is 0."""
    given_out = list(permutations(returns[: len(shapes)]))
    mean = sum(given_out[0]) / len(shapes)
    total = [np.zeros(sum(lengths)) for lengths in shapes]
    for values in given_out:
        rows = [
            trajectory(value, lengths=tuple(lengths), values=np.full(sum(lengths), mean))
            for value, lengths in zip(values, shapes, strict=True)
        ]
        total = [sums + tokens for sums, tokens in zip(total, estimate(rows, config).tokens, strict=True)]
    for sums in total:
        np.testing.assert_allclose(sums / len(given_out), 0.0, atol=1e-9)


@each
def test_kl_in_the_reward_lowers_what_is_far_from_the_reference(config):
    rows = [trajectory(1.0, lengths=(2, 2), values=np.zeros(4)) for _ in range(2)]
    taxed = [replace(rows[0], penalties=np.full(4, 0.1)), replace(rows[1], penalties=np.full(4, 0.01))]
    made = estimate(taxed, config)
    assert made.tokens[0].mean() < made.tokens[1].mean()
