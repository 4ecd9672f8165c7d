"""Lists of choices: ``coevo recipes`` and ``coevo methods``."""

from typing import Annotated, Any

import typer

from coevo.configs.load.load import describe, load_method, load_recipe, names
from coevo.configs.load.open_parts import installed_parts, open_parts
from coevo.configs.run_config import RunConfig
from coevo.flows.console import output
from coevo.flows.console.method_table import parts, side_by_side
from coevo.flows.console.options import JsonOption
from coevo.lineage.trust import extend_path

WIDTH = 100
"""Width of a table of methods, in characters."""


def recipes(as_json: JsonOption = False) -> None:
    """List the recipes for `coevo run`.

    Example: coevo recipes
    """
    _show(_shipped("recipes"), as_json)


def methods(
    which: Annotated[
        list[str] | None,
        typer.Argument(metavar="[METHOD ...]", help="Methods, recipes or recipe files; by default all methods."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the parts of methods side by side.

    Each cell names a part and the settings that differ from its defaults. Methods have the values of their papers;
    docs/papers.md lists the values that a paper does not give. Recipes build on methods and set their own values.
    `evidence`: evidence that admits a lesson, replay or none. Without a name, parts of installed packages are listed
    below; --json leaves them out.

    Example: coevo methods coevo-rl gigpo homerules-coevo-rl
    """
    composed = {name: parts(_composed(name)) for name in which or names("methods")}
    if as_json:
        output.document([{**_named(name), "parts": found} for name, found in composed.items()])
        return
    for rows in side_by_side(composed, WIDTH):
        output.table(rows, tuple(rows[0]))
        output.line()
    for name in which or ():
        output.line(f"{name}: {_named(name)['description']}")
    for setting, name, reference in () if which else installed_parts():
        output.line(f"installed: {setting}.type={name} is {reference}")


def _composed(name: str) -> RunConfig:
    if not _is_file(name):
        return load_recipe(name) if name in names("recipes") else load_method(name)
    config = load_recipe(name)
    extend_path(config)
    open_parts(config)
    return config


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _named(name: str) -> dict[str, Any]:
    if _is_file(name):
        return {"name": name, "description": "a recipe of your own"}
    return {"name": name, "description": describe("recipes" if name in names("recipes") else "methods", name)}


def _shipped(kind: str) -> list[dict[str, str]]:
    return [{"name": name, "description": describe(kind, name)} for name in names(kind)]


def _show(rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("name", "description"))


COMMANDS = (recipes, methods)
