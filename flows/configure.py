"""Configuration of a new run, as a user asks for it."""

from collections.abc import Sequence

from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.envs.registry import with_panel
from coevo.lineage.trust import extend_path


def configure(recipe: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Configuration of a recipe with a user's settings, resolved against its environment.

    Args:
        recipe: name of a shipped recipe, or path of a ``.yaml`` file.
        overrides: settings as ``KEY=VALUE``.

    Raises:
        CoevoError: the recipe or a setting is not valid, or the environment does not exist.
    """
    return resolved(load_recipe(recipe, overrides))


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with the first panel of its environment, where it names none.

    The user must have confirmed its ``python_path``, which is on Python's path afterwards: the class of the environment
    may be there.

    Raises:
        CoevoError: a folder of the path or the environment does not exist.
    """
    extend_path(config)
    return with_panel(config)
