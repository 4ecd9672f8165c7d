"""The first look at the prompts of a recipe, taken once: machine and model sizes do not change prompts."""

from functools import cache

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.tasks.preflight.rehearse import Rehearsal, glance


@cache
def glanced(recipe: str) -> Rehearsal:
    """Prompts of a recipe without overrides."""
    config = load_recipe(recipe)
    return glance(config, make(config.env))
