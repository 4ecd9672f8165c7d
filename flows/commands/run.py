"""``coevo run`` and ``coevo resume``."""

from typing import Annotated

import typer
from rich.console import Console

from configs.load import load_recipe
from flows.settings import WorkspaceOption, workspace_at

Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")]


def run(
    recipe: Annotated[str, typer.Argument(help="Name of a shipped recipe, or a .yaml file.")],
    overrides: Overrides = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; <recipe>-<n> where none is given.")] = None,
    workspace: WorkspaceOption = None,
) -> int:
    """Start a run.

    Example: coevo run homerules-coevo-rl --name first seed=11 iterations=6
    """
    config = load_recipe(recipe, overrides or [])
    place = workspace_at(workspace)
    earlier = place.unfinished(config.recipe)
    paths = place.create(name or place.next_name(config.recipe), config)
    console = Console(highlight=False)
    console.print(f"run {paths.name} in {place.root}")
    if earlier:
        console.print(f"({earlier} is unfinished; to continue it: coevo resume {earlier})")
    from flows.operate import operate

    return operate(place, paths, console)


def resume(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    iterations: Annotated[int | None, typer.Option(min=0, help="New length of the run.")] = None,
    accept_change: Annotated[
        bool, typer.Option("--accept-change", help="Go on although configuration, code or packages have changed.")
    ] = False,
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Begin no revision that would end later than this.")
    ] = None,
    workspace: WorkspaceOption = None,
) -> int:
    """Continue a run from its last revision.

    Example: coevo resume homerules-coevo-rl-1 --iterations 60
    """
    from flows.operate import lengthen, operate

    place = workspace_at(workspace)
    paths = place.existing(run)
    if iterations is not None:
        lengthen(paths, iterations)
    return operate(place, paths, Console(highlight=False), accept_change, max_hours)


COMMANDS = (run, resume)
