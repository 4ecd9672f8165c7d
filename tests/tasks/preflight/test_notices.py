"""Notices before a start: a writer that cannot read an environment."""

from contextlib import closing

import pytest

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.tasks.preflight.notices import notices

FINDS = "bank.writer.type=quote-contrast finds nothing to write in 24 episodes of babyai"


@pytest.mark.parametrize(
    ("recipe", "overrides", "told"),
    [
        ("babyai-rules-coevo-rl", [], True),
        ("babyai-rules-coevo-rl-author", [], False),
        ("homerules-coevo-rl", [], False),
        ("homerules-grpo", [], False),
    ],
)
def test_a_rule_that_finds_nothing_is_named(recipe, overrides, told):
    config = load_recipe(recipe, overrides)
    with closing(make(config.env)) as env:
        found = [each for each in notices(config, env) if each.startswith(FINDS)]
    assert bool(found) == told
    assert all(each.endswith("bank.writer.type=model-contrast") for each in found)
