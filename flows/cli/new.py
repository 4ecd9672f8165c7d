"""``coevo new``: a package for an environment, a part or a recipe of one's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption
from coevo.flows.scaffold import new_package
from coevo.flows.scaffold.templates import PARTS

app = typer.Typer(no_args_is_help=True, help="Write a small package of your own, with a test that passes.")
NameArgument = Annotated[str, typer.Argument(help="Name of the new folder: lower-case letters, digits and '-'.")]


@app.command()
def environment(name: NameArgument, as_json: JsonOption = False) -> None:
    """Write the package of an environment: module, test and entry point.

    Example: coevo new environment my-lockers
    """
    files = new_package.new_environment(name, Path())
    _say(files, f"coevo play {_reference(name)} --python-path {name}", as_json)


@app.command()
def part(
    name: NameArgument,
    kind: Annotated[str, typer.Option("--kind", help=f"Kind of the part: {', '.join(PARTS)}.")],
    as_json: JsonOption = False,
) -> None:
    """Write the package of a part: module, test and entry point.

    Example: coevo new part my-rank --kind advantage
    """
    files = new_package.new_part(name, kind, Path())
    setting = f"{PARTS[kind].setting}.type={_reference(name)}"
    _say(files, f"coevo run homerules-coevo-rl {setting} 'python_path=[{name}]' --dry-run", as_json)


@app.command()
def recipe(name: NameArgument, as_json: JsonOption = False) -> None:
    """Write a folder with a recipe and its test.

    Example: coevo new recipe my-recipe
    """
    _say(new_package.new_recipe(name, Path()), f"coevo run {name}/{name}.yaml --dry-run", as_json)


def _reference(name: str) -> str:
    return f"{name.replace('-', '_')}:{new_package.class_name(name)}"


def _say(files: Sequence[Path], use: str, as_json: bool) -> None:
    test = f"python -m pytest {files[0].parent}"
    made = [str(file) for file in files]
    output.result(
        as_json, {"files": made, "test": test, "use": use}, *made, f"Test it with: {test}", f"Use it with: {use}"
    )
