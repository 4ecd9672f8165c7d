"""Disk of a run, worked out by hand."""

from dataclasses import replace

import pytest

from coevo.configs.policy_config import PretrainedPolicyConfig, ShapeConfig
from coevo.models.capacity.footprint import optimizer, saving, stored, weights
from coevo.models.capacity.model_shape import shape_of

SHAPE = ShapeConfig(
    architecture="qwen3", vocabulary=151936, hidden_size=1024, layers=28, heads=16, kv_heads=8, head_dim=128,
    intermediate_size=3072, max_positions=40960, tied=True,
)  # fmt: skip
PARAMETERS = 596_049_920


@pytest.fixture(scope="module")
def half():
    return shape_of(PretrainedPolicyConfig(type="pretrained", path="Qwen/none", dtype="bfloat16", shape=SHAPE), 0)


def test_a_revision_in_bfloat16_takes_two_bytes_a_parameter_and_its_optimizer_twelve(half):
    assert weights(half) == 2 * PARAMETERS
    assert optimizer(half, critic=False) == 12 * PARAMETERS
    assert optimizer(half, critic=True) == (12 + 4 + 12) * PARAMETERS


def test_what_is_trained_in_float32_has_no_copy_of_it(half):
    assert optimizer(replace(half, bytes=4), critic=False) == 8 * PARAMETERS
    # Rank 64 at 4B: below 1 GiB, so that every revision keeps it.
    adapted = replace(half, rank=64, trainable=132_120_576)
    assert optimizer(adapted, critic=False) == 8 * 132_120_576 < 2**30
    both = [161 * each * 132_120_576 for each in (4, 8)]
    assert [item.bytes for item in stored(adapted, 161, 10, critic=False)] == both


@pytest.mark.parametrize(("revisions", "kept"), [(1, 1), (2, 2), (10, 2), (11, 3), (100, 11)])
def test_a_large_optimizer_is_kept_by_every_tenth_revision_and_the_newest(half, revisions, kept):
    assert [item.bytes for item in stored(half, revisions, 10, critic=False)] == [
        revisions * 2 * PARAMETERS,
        kept * 12 * PARAMETERS,
    ]


def test_a_save_streams_tensors(half):
    assert saving(half) == 4 * 151936 * 1024  # the embeddings in float32 are more than a byte per parameter
    assert saving(replace(half, parameters=8 * 10**9)) == 8 * 10**9
    assert saving(replace(half, rank=16, trainable=10**7)) == 10**7
