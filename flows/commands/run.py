"""``coevo run`` and ``coevo resume``."""

from typing import Annotated

import typer

from configs.errors import CoevoError
from configs.load import load_recipe
from configs.run import RunConfig
from flows.output import console
from flows.settings import JsonOption, TrustOption, WorkspaceOption, workspace_at
from flows.standing import Standing, unfinished
from lineage.trust import extend_path

Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")]


def run(
    recipe: Annotated[str, typer.Argument(help="Name of a shipped recipe, or a .yaml file.")],
    overrides: Overrides = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; <recipe>-<n> where none is given.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would take and play two turns; nothing is started."),
    ] = False,
    on: Annotated[
        str | None, typer.Option(metavar="MACHINE", help="With --dry-run: another machine, for example 4xh200.")
    ] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> int:
    """Start a run, or say with --dry-run what it would take.

    A run that cannot fit this machine is refused before anything is written; a dry run of it ends with exit code 1. A
    run that stops to wait for a person ends with exit code 3.

    Example: coevo run homerules-coevo-rl --name first seed=11 iterations=6
    """
    config = load_recipe(recipe, overrides or [])
    extend_path(config)
    if dry_run:
        return _dry_run(config, on, as_json)
    if on is not None or as_json:
        raise CoevoError(f"{'--on' if on is not None else '--json'} is for a dry run: add --dry-run, or leave it out")
    place = workspace_at(workspace)
    if name is not None:
        place.check_vacant(name)
    _check(config)
    earlier = unfinished(config.recipe, place)
    paths = place.create(name or place.next_name(config.recipe), config)
    shown = console()
    shown.print(f"run {paths.name} in {place.root}", soft_wrap=True)
    if earlier is not None:
        shown.print(f"({_of(earlier)})", soft_wrap=True)
    from flows.operate import operate

    return operate(place, paths, shown, alone=True)


def resume(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    iterations: Annotated[int | None, typer.Option(min=0, help="New length of the run.")] = None,
    accept_change: Annotated[
        bool, typer.Option("--accept-change", help="Go on although configuration, code or packages have changed.")
    ] = False,
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Begin no revision that would end later than this.")
    ] = None,
    trust: TrustOption = None,
    workspace: WorkspaceOption = None,
) -> int:
    """Continue a run from its last revision; exit code 3 says that it has stopped to wait for a person.

    A run from elsewhere may hold settings that start a program, import code or reach a network. They are shown with
    their values, and nothing is done before they are confirmed: one by one on a terminal, or by name with --trust.

    Example: coevo resume homerules-coevo-rl-1 --iterations 60
    """
    from flows.operate import operate, wanted
    from flows.trust import trust_run

    place = workspace_at(workspace)
    paths = place.existing(run)
    config = wanted(paths, iterations)
    trust_run(place, run, config, trust)
    _check(config)
    return operate(place, paths, console(), accept_change, max_hours, iterations, alone=True)


def _of(earlier: Standing) -> str:
    name = earlier.paths.name
    if earlier.process is not None:
        return f"{name} is running: process {earlier.process}"
    if earlier.state == "waiting":
        return f"{name} waits for approval: coevo approve --list {name}"
    return f"{name} is unfinished; to continue it: coevo resume {name}"


def _dry_run(config: RunConfig, on: str | None, as_json: bool) -> int:
    from envs.registry import make
    from flows import output
    from flows.dry_run import report, show
    from models.devices import here, named
    from tasks.assemble import check_panels
    from tasks.forecast import forecast
    from tasks.rehearse import rehearse

    env = make(config.env)
    check_panels(config, env)
    said = report(config, forecast(config, rehearse(config, env), here() if on is None else named(on)))
    (output.document if as_json else show)(said)
    return int(not said["ready"])


def _check(config: RunConfig) -> None:
    """Refuse what cannot fit, before anything is started."""
    from envs.registry import make
    from tasks.forecast import check_fits

    check_fits(config, make(config.env))


COMMANDS = (run, resume)
