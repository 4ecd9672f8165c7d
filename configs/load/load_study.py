"""Studies: YAML files in ``configs/studies`` or of a user, and grids of the command line."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coevo.configs.load.load import load_recipe, mapping_of, mistakes
from coevo.configs.load.pairing import Pairing, load_pairing
from coevo.configs.load.shipped_files import names, shipped
from coevo.configs.run_config import RunConfig
from coevo.configs.study_config import ARMS, ArmConfig, StudyConfig
from coevo.utilities.errors import ConfigError, unknown

SUCCESS = "agent/success"
"""Folder of the metrics of success, by panel."""
OWN = "a grid of your own"
"""Paper of a study that a command line describes."""


def load_study(study: str) -> StudyConfig:
    """The validated study of this name, or of a file by path.

    Raises:
        ConfigError: it is not there, is not YAML, or does not describe a study.
    """
    known = shipped("studies")
    if not study.endswith((".yaml", ".yml")) and study not in known:
        raise ConfigError(unknown("study", study, known, "`coevo ablate --list` lists them; a file ends in .yaml"))
    path = known.get(study, Path(study))
    return stored_study({"name": path.stem, **mapping_of(path, "study")}, path.stem)


def load_studies() -> list[StudyConfig]:
    """All shipped studies, by name."""
    return [load_study(name) for name in names("studies")]


def stored_study(settings: dict[str, Any], source: str) -> StudyConfig:
    """The study of these settings.

    Raises:
        ConfigError: they do not describe one.
    """
    try:
        return StudyConfig.model_validate_json(json.dumps(settings))
    except ValidationError as error:
        raise ConfigError(f"{source}: {mistakes(error, StudyConfig)}") from None


def changed(study: StudyConfig, name: str | None, seeds: int | None, overrides: Sequence[str]) -> StudyConfig:
    """A study with another name or number of seeds, and with further settings of every arm.

    Raises:
        ConfigError: a value is not possible.
    """
    settings = study.model_dump(mode="json")
    settings["settings"] += list(overrides)
    chosen = {"name": name or study.name, "seeds": study.seeds if seeds is None else seeds}
    return stored_study(settings | chosen, study.name)


def configured(study: StudyConfig, arm: ArmConfig, seed: int) -> RunConfig:
    """The validated configuration of one run of a study.

    Raises:
        ConfigError: it is not possible; the message begins with the arm.
    """
    try:
        settings = [*study.settings, *arm.settings, f"seed={seed}"]
        if arm.pairing is not None:
            return load_pairing(Pairing(*arm.pairing), settings)
        return load_recipe(arm.recipe or study.recipe, settings)
    except ConfigError as error:
        raise ConfigError(f"{study.name}, arm {arm.name}: {error}") from None


def grid(recipe: str, axes: Sequence[str], panel: str, overrides: Sequence[str] = ()) -> StudyConfig:
    """A study of all combinations of values, compared by success on one panel.

    Args:
        recipe: shipped recipe, or a recipe file.
        axes: ``KEY=VALUE,VALUE,…``; the first value of each belongs to the reference arm.
        panel: that every arm plays.
        overrides: settings of every arm.

    Raises:
        ConfigError: an axis is not written so or named twice, or there are too many combinations.
    """
    chosen = [_axis(text) for text in axes]
    _check_once([axis[0].partition("=")[0] for axis in chosen], [text.partition("=")[0] for text in overrides])
    arms = [list(each) for each in product(*chosen)]
    if len(arms) > ARMS:
        raise ConfigError(f"the grid has {len(arms)} arms: a study has at most {ARMS}, give fewer values")
    keys = [_short(axis[0].partition("=")[0]) for axis in chosen]
    settings = {
        "name": f"{Path(recipe).stem}-{'-'.join(keys)}"[:40],
        "paper": OWN,
        "finding": f"No claim: {recipe} by {' x '.join(axes)}.",
        "recipe": recipe,
        "arms": [{"name": name, "settings": arm} for name, arm in zip(_names(arms), arms, strict=True)],
        "metrics": [{"name": f"{SUCCESS}/{panel}", "over": over} for over in ("end", "area")],
    }
    return stored_study(settings, "--grid")


def _names(arms: Sequence[Sequence[str]]) -> list[str]:
    """Names of the arms, cut after 40 characters; numbered if two would then be equal."""
    names = ["-".join(map(_named, arm))[:40] for arm in arms]
    alike = len({*names}) < len(names)
    return [f"{name[:37]}-{number}" if alike else name for number, name in enumerate(names, 1)]


def _axis(text: str) -> list[str]:
    key, _, values = text.partition("=")
    found = [f"{key}={value}" for value in values.split(",")]
    if not key or "" in values.split(","):  # without a sign of equality, there is one value, and it is empty
        raise ConfigError(f"{text!r}: an axis of a grid is written KEY=VALUE,VALUE, for example bank.every=5,20")
    twice = _twice(found)
    if twice is not None:
        raise ConfigError(f"{text!r}: the axis has {twice} twice: give different values")
    return found


def _check_once(keys: Sequence[str], others: Sequence[str]) -> None:
    """Check that no axis of a grid is there twice, nor among the other settings: the later one would win."""
    twice = _twice(keys)
    if twice is not None:
        raise ConfigError(f"two axes of the grid are of {twice}: give all of its values in one, {twice}=VALUE,VALUE")
    if both := [key for key in keys if key in others]:
        raise ConfigError(f"{both[0]} is an axis of the grid and a setting of every arm: leave one of them out")


def _twice(texts: Sequence[str]) -> str | None:
    """The first text that is there twice."""
    return next((text for number, text in enumerate(texts) if text in texts[:number]), None)


def _short(key: str) -> str:
    return key.rpartition(".")[2]


def _named(override: str) -> str:
    """Name of an arm's value: the last part of its key, and the value in the characters that a run's name may have."""
    key, _, value = override.partition("=")
    return f"{_short(key)}-" + "".join(each if each.isalnum() or each in "._-" else "-" for each in value)
