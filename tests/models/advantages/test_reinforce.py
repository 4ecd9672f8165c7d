"""REINFORCE: the return itself, or less the mean of the batch."""

import pytest
from support.trajectories import group

from coevo.configs.update.advantage_config import ReinforceConfig
from coevo.models.advantages import estimate

ROWS = [*group([1.0, 1.0], group="flat"), *group([0.0, 1.0], group="differ")]


@pytest.mark.parametrize(
    ("baseline", "expected", "mean"), [("batch", [0.25, 0.25, -0.75, 0.25], 0.75), ("none", [1.0, 1.0, 0.0, 1.0], 0.0)]
)
def test_groups_do_not_matter(baseline, expected, mean):
    made = estimate(ROWS, ReinforceConfig(type="reinforce", baseline=baseline))
    assert made.episodes.tolist() == expected
    assert made.metrics == {"policy/advantage/baseline": mean}
    assert made.used.all()
    assert not made.centred
