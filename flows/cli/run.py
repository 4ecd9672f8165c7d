"""``coevo run`` and ``coevo resume``."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from coevo.configs.errors import CoevoError
from coevo.configs.load.load import load_recipe
from coevo.configs.run import RunConfig
from coevo.configs.threads import with_threads
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, workspace_at, workspace_option
from coevo.flows.console.output import console
from coevo.flows.history.standing import Standing, unfinished
from coevo.lineage.trust import extend_path
from coevo.lineage.workspace import RunPaths, Workspace

if TYPE_CHECKING:
    from coevo.tasks.preflight.remedy import Offer

Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")]


def run(
    recipe: Annotated[str, typer.Argument(help="Name of a shipped recipe, or a .yaml file.")],
    overrides: Overrides = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; by default <recipe>-<n>.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Estimate time and memory, and play two turns; start no run."),
    ] = False,
    on: Annotated[
        str | None, typer.Option(metavar="MACHINE", help="With --dry-run: another machine, for example 4xh200.")
    ] = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> int:
    """Start a run, or estimate its cost with --dry-run.

    A run that does not fit this machine is refused before anything is written; its dry run exits with code 1. A run
    that stops for approval exits with code 3.

    Example: coevo run homerules-coevo-rl --name first seed=11 iterations=6
    """
    from coevo.envs.registry import with_panel

    config = load_recipe(recipe, overrides or [])
    extend_path(config)
    config = with_panel(config)
    if dry_run and on is None:
        config = with_threads(config)
    if dry_run:
        return _dry_run(config, workspace_at(workspace), on, as_json)
    if on is not None or as_json:
        raise CoevoError(f"{'--on' if on is not None else '--json'} is for a dry run: add --dry-run, or leave it out")
    place = workspace_at(workspace)
    if name is not None:
        place.check_vacant(name)
    _check(config, place)
    earlier = unfinished(config.recipe, place)
    paths = place.create(name or place.next_name(config.recipe), config)
    shown = console()
    shown.print(f"run {paths.name} in {place.root}", soft_wrap=True)
    if earlier is not None:
        shown.print(f"({_of(earlier, workspace_option(place))})", soft_wrap=True)
    from coevo.flows.operate import operate

    return operate(place, paths, shown, alone=True)


def resume(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    iterations: Annotated[int | None, typer.Option(min=0, help="New number of iterations of the run.")] = None,
    accept_change: Annotated[
        bool, typer.Option("--accept-change", help="Continue although configuration, code or packages have changed.")
    ] = False,
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Start no revision that would end later than this.")
    ] = None,
    trust: TrustOption = None,
    workspace: WorkspaceOption = None,
) -> int:
    """Continue a run from its last revision.

    A run that stops for approval exits with code 3. A run from elsewhere may hold settings that start a program, import
    code or reach a network. Nothing starts before they are confirmed: one by one on a terminal, or by name with
    --trust.

    Example: coevo resume homerules-coevo-rl-1 --iterations 60
    """
    from coevo.flows.console.trust import trust_run
    from coevo.flows.operate import operate, wanted

    place = workspace_at(workspace)
    paths = place.existing(run)
    config = wanted(paths, iterations)
    trust_run(place, run, config, trust)
    _check(config, place, paths)
    return operate(place, paths, console(), accept_change, max_hours, iterations, alone=True)


def _of(earlier: Standing, option: str) -> str:
    name = earlier.paths.name
    if earlier.process is not None:
        return f"{name} is running: process {earlier.process}"
    if earlier.status.status == "waiting":
        return f"{name} waits for approval: coevo approve --list {name}{option}"
    return f"{name} is unfinished; to continue it: coevo resume {name}{option}"


def _dry_run(config: RunConfig, place: Workspace, on: str | None, as_json: bool) -> int:
    from coevo.flows.console import output
    from coevo.flows.console.dry_run import report, show
    from coevo.flows.console.patience import patience
    from coevo.models.capacity.devices import here, named
    from coevo.tasks.preflight.forecast import forecast, on_this_machine
    from coevo.tasks.preflight.rehearse import rehearse
    from coevo.tasks.publish.report import in_stage
    from coevo.tasks.run.assemble import environment_of

    with patience("the dry run"), environment_of(config) as env:
        with in_stage("plays the first turns with a random agent"):
            rehearsal = rehearse(config, env)
        with in_stage("forecasts memory, disk and time"):
            found = forecast(config, rehearsal, here(place.root) if on is None else named(on))
            said = report(config, env, on_this_machine(found, config) if on is None else found)
    (output.document if as_json else show)(said)
    return int(not said["ready"])


def _check(config: RunConfig, place: Workspace, paths: RunPaths | None = None) -> None:
    """Refuse a run that its environment or this machine cannot play, before anything starts.

    Args:
        config: the run.
        place: its workspace.
        paths: its files; None for a new run.
    """
    from coevo.flows.console.patience import patience
    from coevo.tasks.preflight.forecast import check_fits
    from coevo.tasks.preflight.remedy import Offer
    from coevo.tasks.publish.report import in_stage
    from coevo.tasks.run.assemble import environment_of

    with (
        patience("the check of the run"),
        environment_of(config) as env,
        in_stage("checks that the run fits this machine"),
    ):
        check_fits(config, env, place.root, Offer if paths is None else partial(_branched, place, paths))


def _branched(place: Workspace, paths: RunPaths) -> "Offer":
    """How settings of a run change: in a branch of its last revision; before there is one, in a new run."""
    from coevo.flows.upkeep.branch import FIXED
    from coevo.lineage.lineage import Lineage
    from coevo.tasks.preflight.remedy import Offer

    if paths.lineage.exists():
        with Lineage.open(paths.lineage, place.cache) as lineage:
            head = lineage.head()
        if head is not None:
            branch = f"run `coevo branch {paths.name}@{head.revision} NEW "
            return Offer(branch, f"{workspace_option(place)}`", tuple(FIXED))
    return Offer("start a new run with ")


COMMANDS = (run, resume)
