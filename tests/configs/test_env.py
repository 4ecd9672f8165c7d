"""Arguments of an embedded environment's constructor are checked as its settings are."""

import pytest

from coevo.configs.env import BabyAIConfig, HomeRulesConfig
from coevo.utilities.errors import ConfigError


def test_what_is_possible_is_taken():
    assert HomeRulesConfig.of(level=2, houses=1) == HomeRulesConfig(level=2, houses=1)
    assert BabyAIConfig.of() == BabyAIConfig()


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        (HomeRulesConfig, {"level": 3}, "env.level = 3: Input should be 1 or 2"),
        (HomeRulesConfig, {"level": 0, "houses": 17}, "env.level = 0: Input should be 1 or 2"),
        (HomeRulesConfig, {"houses": 17}, "env.houses = 17: Input should be less than or equal to 16"),
        (BabyAIConfig, {"kinds": ("goto", "fly")}, "env.kinds = 'fly': Input should be 'goto'"),
        (BabyAIConfig, {"rooms": 2}, "env.rooms = 2: Extra inputs are not permitted"),
    ],
)
def test_the_first_that_is_not_is_named(kind, options, says):
    with pytest.raises(ConfigError) as caught:
        kind.of(**options)
    assert str(caught.value).startswith(says)
