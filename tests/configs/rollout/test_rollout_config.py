"""Episodes of an iteration: not more at a time than there is room for."""

import pytest
from pydantic import ValidationError

from coevo.configs.rollout.rollout_config import RolloutConfig


@pytest.mark.parametrize(("tasks", "size"), [(131_072, 1), (65_536, 2), (16_384, 8), (1, 131_072)])
def test_131072_episodes_are_played_at_a_time(tasks, size):
    assert RolloutConfig(tasks=tasks, group_size=size).group_size == size


@pytest.mark.parametrize(("tasks", "size"), [(65_537, 2), (16_385, 8), (363, 362)])
def test_more_episodes_are_refused(tasks, size):
    with pytest.raises(ValidationError, match=f"tasks x group_size is {tasks * size}: at most 131072 episodes"):
        RolloutConfig(tasks=tasks, group_size=size)
