"""``coevo schedule`` and ``coevo worker``: runs that go on by themselves."""

from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from configs.errors import CoevoError
from flows import output
from flows.settings import JsonOption, TrustOption, WorkspaceOption, workspace_at

if TYPE_CHECKING:
    from flows.schedules import Planned

app = typer.Typer(help="Let runs go on by themselves, night by night.", rich_markup_mode=None, add_completion=False)
RunArgument = Annotated[str, typer.Argument(help="Name of the run.")]
COLUMNS = ("run", "cron", "timezone", "iterations", "max_hours", "rollback_on_drop", "notify", "next", "last")
TERMS = ("iterations", "max_hours", "rollback_on_drop", "notify")


@app.command()
def add(
    run: RunArgument,
    cron: Annotated[str, typer.Option(help="When: minute, hour, day of month, month, day of week.")],
    timezone: Annotated[str, typer.Option(help="In which time zone, for example Europe/Berlin.")] = "UTC",
    iterations: Annotated[int, typer.Option(min=1, help="Most iterations a night.")] = 20,
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Begin no revision that would end later than this.")
    ] = None,
    rollback_on_drop: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Undo a night in which a panel's success falls by more.")
    ] = None,
    notify: Annotated[
        str | None, typer.Option(metavar="TYPE/NAME", help="Prefect notification block that is told of each night.")
    ] = None,
    trust: TrustOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Let a run go on at certain times, or change when it does.

    Each night goes on from the last committed revision, however the one before ended: towards the run's last iteration,
    or beyond it where that is reached. `coevo worker` must be running then.

    Example: coevo schedule add homerules-coevo-rl-1 --cron "0 2 * * *" --timezone Europe/Berlin --max-hours 3
    """
    place = workspace_at(workspace)
    config = place.existing(run).read_config()
    _check_zone(timezone)
    from flows.operate import with_iterations
    from flows.schedules import Schedule
    from flows.schedules import add as plan
    from flows.trust import trust_run

    trust_run(place, run, config, trust)
    with_iterations(config, max(1, config.iterations), run)  # whether there is anything to go on with
    terms = {"iterations": iterations, "max_hours": max_hours, "rollback_on_drop": rollback_on_drop, "notify": notify}
    parameters = {"run": run, "workspace": str(place.root), **terms}
    made = plan(place, run, Schedule(cron, timezone, parameters))
    output.line(f"{run} goes on at {_row(made)['next']}, if `coevo worker` is running then.")


@app.command("list")
def list_(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show the schedules, and when each goes on next.

    Last is the state of the last night that was not cancelled, as one is that falls due while another goes on.

    Example: coevo schedule list
    """
    from flows.schedules import planned

    rows = [_row(one) for one in planned(workspace_at(workspace))]
    if as_json:
        output.document(rows)
    elif rows:
        output.table([row | {"next": row["next"] or "paused"} for row in rows], COLUMNS)
    else:
        output.line("No run has a schedule: make one with `coevo schedule add`.")


@app.command()
def pause(run: RunArgument, workspace: WorkspaceOption = None) -> None:
    """Let no further night begin; one that is under way goes on.

    Example: coevo schedule pause homerules-coevo-rl-1
    """
    from flows import schedules

    schedules.pause(workspace_at(workspace), run)
    output.line(f"The schedule of {run} is paused; coevo schedule resume {run}")


@app.command()
def resume(run: RunArgument, workspace: WorkspaceOption = None) -> None:
    """Let nights begin again.

    Example: coevo schedule resume homerules-coevo-rl-1
    """
    from flows import schedules

    output.line(f"{run} goes on at {_row(schedules.resume(workspace_at(workspace), run))['next']}.")


@app.command()
def remove(run: RunArgument, workspace: WorkspaceOption = None) -> None:
    """Forget a schedule; the run and all its revisions stay.

    Example: coevo schedule remove homerules-coevo-rl-1
    """
    from flows import schedules

    schedules.remove(workspace_at(workspace), run)
    output.line(f"{run} has no schedule any more.")


def worker(workspace: WorkspaceOption = None) -> int:
    """Play the nights of this workspace's schedules as they fall due, until interrupted.

    Example: coevo worker
    """
    from flows.worker import work

    return work(workspace_at(workspace))


def _check_zone(timezone: str) -> None:
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise CoevoError(f"--timezone: {timezone!r} is not a time zone: write one like Europe/Berlin") from None


def _row(one: "Planned") -> dict[str, Any]:
    zone = ZoneInfo(one.schedule.timezone)
    when = None if one.next is None else one.next.astimezone(zone).isoformat(timespec="minutes")
    terms = {name: one.schedule.parameters.get(name) for name in TERMS}
    return {
        "run": one.run,
        "cron": one.schedule.cron,
        "timezone": one.schedule.timezone,
        **terms,
        "paused": one.paused,
        "next": when,
        "last": one.last,
    }


COMMANDS = (worker,)
