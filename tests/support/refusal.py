"""The line in which a recipe is refused."""

import pytest

from coevo.configs.load.load import load_recipe
from coevo.utilities.errors import ConfigError


def refusal(recipe, settings=()):
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)
