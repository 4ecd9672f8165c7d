"""Properties of every estimator, whatever the groups and however long the episodes."""

from dataclasses import replace
from itertools import permutations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trajectories import SHAPES, batches, trajectory

from coevo.configs.update.advantage import AdvantageConfig
from coevo.models.advantages import estimate

KINDS = get_args(get_args(AdvantageConfig)[0])
UNDISCOUNTED = {"gamma": 1.0, "gamma_step": 1.0, "lambda_step": 1.0, "whiten": False}


def made(kind, **settings):
    known = {name: value for name, value in settings.items() if name in kind.model_fields}
    return kind(type=kind.model_fields["type"].annotation.__args__[0], **known)


CONFIGS = [made(kind) for kind in KINDS]
FAIR = [made(kind, **UNDISCOUNTED) for kind in KINDS]
"""Without a discount, which knows the length of an episode and is meant to."""
each = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.type)


@each
@given(rows=batches(), random=st.randoms(use_true_random=False))
def test_order_does_not_matter(config, rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    straight, shuffled = estimate(rows, config), estimate([rows[index] for index in order], config)
    np.testing.assert_allclose(shuffled.episodes, straight.episodes[order], atol=1e-6)
    assert (shuffled.used == straight.used[order]).all()
    for place, index in enumerate(order):
        np.testing.assert_allclose(shuffled.tokens[place], straight.tokens[index], atol=1e-6)


@each
@given(rows=batches())
def test_every_token_has_a_finite_advantage_and_centred_means_centred(config, rows):
    made = estimate(rows, config)
    assert [len(values) for values in made.tokens] == [row.tokens for row in rows]
    assert all(np.isfinite(values).all() for values in made.tokens)
    for name in {row.group for row in rows} if made.centred else ():
        assert abs(made.episodes[[row.group == name for row in rows]].mean()) < 1e-9


@each
@given(rows=batches(), lengths=SHAPES)
def test_another_group_changes_nothing_but_what_is_taken_over_the_batch(config, rows, lengths):
    if config.type in ("reinforce", "gae"):
        return
    more = [trajectory(value, "other", tuple(lengths)) for value in (0.0, 1.0, 1.0)]
    alone, beside = estimate(rows, config), estimate([*more, *rows], config)
    for values, same in zip(alone.tokens, beside.tokens[3:], strict=True):
        np.testing.assert_array_equal(values, same)


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


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.type)
def test_kl_in_the_reward_lowers_what_is_far_from_the_reference(config):
    rows = [trajectory(1.0, lengths=(2, 2), values=np.zeros(4)) for _ in range(2)]
    taxed = [replace(rows[0], penalties=np.full(4, 0.1)), replace(rows[1], penalties=np.full(4, 0.01))]
    made = estimate(taxed, config)
    assert made.tokens[0].mean() < made.tokens[1].mean()
