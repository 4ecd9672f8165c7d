"""Writing of a new package: a folder with a module, its test and its entry point, whole or not at all."""

import keyword
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import get_args

from coevo.configs.base import Config
from coevo.configs.load.setting_place import classes
from coevo.flows.scaffold.templates import ENVIRONMENT, PARTS, RECIPE, RECIPE_TEST, PartTemplate
from coevo.utilities.errors import CoevoError, unknown

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_NAME_CHARS = 60
"""Most characters of a name."""
_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
dependencies = ["coevo"]

[project.entry-points."$group"]
$name = "$module:$cls"

[tool.setuptools]
py-modules = ["$module"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""


def new_part(name: str, kind: str, directory: Path) -> list[Path]:
    """Write the package of a part; return its files.

    Args:
        name: of the package and of the part.
        kind: key of ``coevo.flows.scaffold.templates.PARTS``.
        directory: folder in which the package's own folder is made.

    Raises:
        CoevoError: there is no such kind, the name is taken or not possible, or the folder cannot be written.
    """
    if kind not in PARTS:
        raise CoevoError(unknown("kind of part", kind, PARTS, f"Choose one of {', '.join(PARTS)}"))
    return _package(name, PARTS[kind], directory)


def new_environment(name: str, directory: Path) -> list[Path]:
    """Write the package of an environment; return its files. Arguments and errors are those of ``new_part``."""
    return _package(name, ENVIRONMENT, directory)


def new_recipe(name: str, directory: Path) -> list[Path]:
    """Write a folder with a recipe and its test; return its files. Arguments and errors are those of ``new_part``."""
    _check_name(name, directory)
    module = name.replace("-", "_")
    return _written(directory / name, {f"{name}.yaml": RECIPE, f"test_{module}.py": _filled(RECIPE_TEST, name)})


def class_name(name: str) -> str:
    """Name of the class in a package, ``MyRank`` of ``my-rank``."""
    return "".join(word.capitalize() for word in name.split("-"))


def _package(name: str, template: PartTemplate, directory: Path) -> list[Path]:
    _check_name(name, directory)
    file = name.replace("-", "_")
    if keyword.iskeyword(file) or keyword.iskeyword(class_name(name)) or find_spec(file) is not None:
        raise CoevoError(f"{name!r}: Python has a module or a word {file}: choose another name, such as my-{name}")
    if name in _built_in(template.setting):
        raise CoevoError(f"{name!r}: {template.setting}.type has this name in coevo: choose another, such as my-{name}")
    texts = {"pyproject.toml": _PROJECT, f"{file}.py": template.module, f"test_{file}.py": template.test}
    return _written(directory / name, {each: _filled(text, name, template.group) for each, text in texts.items()})


def _built_in(setting: str) -> set[str]:
    """Types of a section that ship with coevo, which take precedence over installed ones."""
    from coevo.configs.run_config import RunConfig

    kinds: list[type[Config]] = [RunConfig]
    for key in setting.split("."):
        kinds = classes(kinds[0].model_fields[key].annotation)
    return {name for kind in kinds for name in get_args(kind.model_fields["type"].annotation)}


def _check_name(name: str, directory: Path) -> None:
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise CoevoError(
            f"{name[:MAX_NAME_CHARS]!r} is no name of a package: use at most {MAX_NAME_CHARS} lower-case letters, "
            "digits and '-', such as my-part"
        )
    if (directory / name).exists() or (directory / name).is_symlink():
        raise CoevoError(f"{directory / name} exists: choose another name, or remove it first")


def _filled(text: str, name: str, group: str = "") -> str:
    return Template(text).substitute(name=name, module=name.replace("-", "_"), cls=class_name(name), group=group)


def _written(target: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files into a folder beside the target, which becomes the target when they are whole."""
    unfinished = target.with_name(f".{target.name}.part")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        unfinished.rename(target)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise CoevoError(f"{target}: cannot be written: {error.strerror}: change to another folder") from None
    return [target / name for name in texts]
