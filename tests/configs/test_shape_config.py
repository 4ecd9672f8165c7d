"""Sizes of a pretrained model that belong to one model."""

import pytest
from pydantic import ValidationError

from coevo.configs.policy_config import ShapeConfig

QWEN2 = {
    "architecture": "qwen2", "vocabulary": 99, "hidden_size": 64, "layers": 2, "heads": 4, "kv_heads": 2,
    "head_dim": 16, "intermediate_size": 96, "max_positions": 32,
}  # fmt: skip
QWEN3 = QWEN2 | {"architecture": "qwen3"}
LLAMA = QWEN2 | {"architecture": "llama"}


@pytest.mark.parametrize(
    "sizes",
    [
        QWEN2,
        QWEN2 | {"kv_heads": 4},
        QWEN2 | {"kv_heads": 1},
        QWEN3 | {"hidden_size": 128},
        QWEN3 | {"hidden_size": 8},
        LLAMA,
    ],
)
def test_sizes_of_a_model_are_taken(sizes):
    assert ShapeConfig(**sizes).model_dump() == sizes | {"tied": False}


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        (QWEN2 | {"kv_heads": 3}, "kv_heads=3 does not divide heads=4: see the model's config.json"),
        (QWEN3 | {"kv_heads": 8}, "kv_heads=8 does not divide heads=4"),
        (QWEN2 | {"hidden_size": 63}, "heads x head_dim is 64: qwen2 has hidden_size=63"),
        (QWEN2 | {"hidden_size": 65}, "heads x head_dim is 64: qwen2 has hidden_size=65"),
    ],
)
def test_sizes_of_no_model_are_refused(sizes, says):
    with pytest.raises(ValidationError, match=says):
        ShapeConfig(**sizes)
