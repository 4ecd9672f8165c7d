"""A misspelt name is answered with the nearest one that exists, in one line."""

import pytest

from coevo.configs.load.load import load_method, load_recipe
from coevo.envs.registry import find
from coevo.utilities.errors import ConfigError, nearest, unknown


@pytest.mark.parametrize(
    ("load", "name", "says"),
    [
        (load_recipe, "homerules-coevorl", "No recipe 'homerules-coevorl'. Did you mean 'homerules-coevo-rl'?"),
        (load_recipe, "zzz", "No recipe 'zzz'. `coevo recipes` lists them"),
        (load_method, "gipgo", "No method 'gipgo'. Did you mean 'gigpo'? `coevo methods` lists them"),
        (find, "homerule", "No environment 'homerule'. Did you mean 'homerules'? `coevo envs` lists them"),
    ],
)
def test_each_kind_of_name_has_a_suggestion(load, name, says):
    with pytest.raises(ConfigError) as caught:
        load(name)
    assert str(caught.value).startswith(says)


def test_a_part_that_a_recipe_builds_on_has_a_suggestion(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [methods/gipgo]\n")
    with pytest.raises(ConfigError, match="Did you mean 'methods/gigpo'"):
        load_recipe(str(path))


def test_a_long_name_is_shortened():
    """To 80 characters with its quotation mark; 78 with both are shown whole."""
    assert unknown("recipe", "x" * 78, [], "There is none") == f"No recipe '{'x' * 78}'. There is none"
    assert unknown("recipe", "x" * 79, [], "There is none") == f"No recipe '{'x' * 79}.... There is none"
    assert len(unknown("recipe", "x" * 5000, ["x"], "There is one")) < 200


def test_a_name_is_as_similar_as_its_first_160_characters():
    """100 of 160 are the same, which is 0.625, and 0.6 is enough."""
    known = "c" * 60 + "b" * 100
    assert nearest("a" * 60 + "b" * 100 + "z" * 1000, [known]) == f" Did you mean {known!r}?"
    assert nearest("a" * 70 + "b" * 90, [known]) == ""


def test_an_unknown_key_is_reported_before_missing_ones(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("sheed: 3\n")
    with pytest.raises(ConfigError, match="mine: sheed: no such key"):
        load_recipe(str(path))
