"""Values of the mathematics stay what they were when a step got them."""

import pytest
from support.immutable import changeable

import coevo.models.advantages
import coevo.models.losses
import coevo.models.rewards


@pytest.mark.parametrize(
    ("package", "buffers"),
    [(coevo.models.advantages, set()), (coevo.models.losses, {"_Gradients"}), (coevo.models.rewards, set())],
    ids=["advantages", "losses", "rewards"],
)
def test_no_value_can_be_changed_but_gradients_that_are_added_up(package, buffers):
    assert changeable(package) == buffers
