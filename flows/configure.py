"""Configuration of a new run, as a user asks for it."""

from collections.abc import Mapping, Sequence

from coevo.configs.load.load import load_recipe
from coevo.configs.load.pairing import Pairing, load_pairing
from coevo.configs.run_config import RunConfig
from coevo.envs.registry import available, with_panel
from coevo.lineage.trust import extend_path
from coevo.utilities.errors import CoevoError

PAIRED = "name one recipe, or all of --env, --method and --model"


def chosen_config(
    recipe: str | None, pairing: Mapping[str, str | None], overrides: Sequence[str] = (), machine: str | None = None
) -> RunConfig:
    """Configuration of what a user names: a recipe, or a pairing of an environment, a method and a model.

    Args:
        recipe: name of a shipped recipe, or path of a ``.yaml`` file; of a pairing, its first setting or None.
        pairing: ``env``, ``method`` and ``model``; None for what is not named.
        overrides: settings as ``KEY=VALUE``.
        machine: machine of the run, for example ``4xh200``; None for this one.

    Raises:
        CoevoError: it names both or neither, or what it names is not valid.
    """
    named = {option: value for option, value in pairing.items() if value is not None}
    if not named:
        if recipe is None:
            raise CoevoError(f"Which run? {PAIRED}: `coevo recipes` and `coevo methods` list them")
        return configure(recipe, overrides)
    if recipe is not None and "=" not in recipe:
        raise CoevoError(f"{recipe!r} is a recipe, which has its own {' and '.join(named)}: {PAIRED}")
    missing = [f"--{option}" for option, value in pairing.items() if value is None]
    if missing:
        raise CoevoError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: {PAIRED}")
    return configure_pairing(Pairing(**named), [*([] if recipe is None else [recipe]), *overrides], machine)


def configure_pairing(pairing: Pairing, overrides: Sequence[str] = (), machine: str | None = None) -> RunConfig:
    """Configuration of a pairing with a user's settings, resolved against its environment.

    Args:
        pairing: environment, method and model.
        overrides: settings as ``KEY=VALUE``.
        machine: machine of the run, for example ``4xh200``; None for this one.

    Raises:
        CoevoError: a name or a setting is not valid.
    """

    def gpus() -> int:
        from coevo.models.capacity.devices import gpus_here, named

        return gpus_here() if machine is None else len(named(machine).gpus)

    return resolved(load_pairing(pairing, overrides, gpus, available()))


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
