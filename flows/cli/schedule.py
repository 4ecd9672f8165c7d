"""``coevo schedule`` and ``coevo worker``: scheduled sessions of runs."""

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

import typer

from coevo.flows.console import output
from coevo.flows.console.options import (
    JsonOption,
    TrustOption,
    WorkspaceOption,
    with_option_groups,
    workspace_at,
    workspace_option,
)
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.sessions.schedules import StoredSchedule

app = typer.Typer(help="Continue runs on a schedule.", rich_markup_mode=None, add_completion=False)
RunArgument = Annotated[str, typer.Argument(help="Name of the run.")]
COLUMNS = ("run", "schedule", "session", "next", "last")
MINUTES = len("2026-01-31T02:00")
"""Characters of a time without its offset: the column ``schedule`` names the time zone."""
AHEAD, DAY, MINUTE = timedelta(days=100), timedelta(days=1), timedelta(minutes=1)
"""Time in which a change of clocks is named; Prefect plans no further."""


PoolOption = Annotated[str, typer.Option("--pool", metavar="NAME", help="Work pool, one worker a machine.")]


@dataclass(frozen=True)
class SessionOptions:
    """Terms of each session."""

    iterations: Annotated[int, typer.Option(min=1, help="Maximum iterations per session.")] = 20
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Start no revision that would end later than this.")
    ] = None
    rollback_on_drop: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Roll back a session if success on a panel drops by more than this."),
    ] = None
    notify: Annotated[
        str | None, typer.Option(metavar="TYPE/NAME", help="Prefect notification block that reports each session.")
    ] = None
    remote: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Where machines share the run: a session begins on any worker."),
    ] = None


@dataclass(frozen=True)
class TimeOptions:
    """Times of the sessions, as options."""

    cron: Annotated[str, typer.Option(help="Five fields: minute, hour, day of month, month, day of week.")]
    timezone: Annotated[str, typer.Option(help="Time zone of --cron, for example Europe/Berlin.")] = "UTC"
    pool: PoolOption = "coevo"


@app.command()
@with_option_groups
def add(
    run: RunArgument,
    times: TimeOptions,
    terms: SessionOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Continue a run on a schedule, or change its schedule.

    Each session continues from the last committed revision, up to the run's last iteration; if that is reached, it adds
    --iterations more. `coevo worker` must be running.

    Example: coevo schedule add homerules-coevo-rl-1 --cron "0 2 * * *" --timezone Europe/Berlin --max-hours 3
    """
    workspace = workspace_at(directory)
    config = workspace.existing(run).read_config()
    _check_zone(times.timezone)
    from coevo.flows.console.trust_prompt import trust_run
    from coevo.flows.sessions.schedules import Schedule
    from coevo.flows.sessions.schedules import add as plan
    from coevo.flows.start_run import with_iterations

    trust_run(workspace, run, config, trust)
    with_iterations(config, max(1, config.iterations), run)  # raises if the run cannot continue
    parameters = {"run": run, "workspace": str(workspace.root), **asdict(terms)}
    row = _row(plan(workspace, run, Schedule(times.cron, times.timezone, parameters, times.pool)))
    output.result(as_json, row, f"Next session of {run}: {row['next']}, if `coevo worker` is running then.")


@app.command("list")
def list_(as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the schedules with the time of the next session.

    A line follows where clocks change within 100 days: the sessions of that day are as Prefect plans them, and one may
    run twice or not at all.

    `last`: final state of the last session that was not cancelled. A session is cancelled if it is due while another
    one of the same run is running.

    Example: coevo schedule list
    """
    from coevo.flows.sessions.schedules import planned

    found = planned(workspace_at(workspace))
    if as_json:
        output.document([_row(one) for one in found])
        return
    output.table([_cells(one) for one in found], COLUMNS)
    for zone in dict.fromkeys(one.schedule.timezone for one in found):
        change = next_change(zone, datetime.now(UTC))
        if change is not None:
            output.line(
                f"Clocks in {zone} change on {change.astimezone(ZoneInfo(zone)):%Y-%m-%d to %H:%M}: Prefect plans the "
                "sessions around that time; one may run twice on one day, or be left out on the next."
            )
    if not found:
        output.line("No run has a schedule: make one with `coevo schedule add`.")


@app.command()
def pause(run: RunArgument, as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Pause a schedule; a session that has begun continues.

    Example: coevo schedule pause homerules-coevo-rl-1
    """
    from coevo.flows.sessions import schedules

    schedules.pause(found := workspace_at(workspace), run)
    said = f"Paused the schedule of {run}; resume it with: coevo schedule resume {run}{workspace_option(found)}"
    output.result(as_json, {"run": run, "paused": True}, said)


@app.command()
def resume(run: RunArgument, as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Resume a paused schedule.

    Example: coevo schedule resume homerules-coevo-rl-1
    """
    from coevo.flows.sessions import schedules

    row = _row(schedules.resume(workspace_at(workspace), run))
    output.result(as_json, row, f"Next session of {run}: {row['next']}")


@app.command()
def remove(run: RunArgument, as_json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Delete a schedule; the run and all its revisions stay.

    Example: coevo schedule remove homerules-coevo-rl-1
    """
    from coevo.flows.sessions import schedules

    schedules.remove(workspace_at(workspace), run)
    output.result(as_json, {"run": run, "deleted": True}, f"Deleted the schedule of {run}.")


def worker(pool: PoolOption = "coevo", as_json: JsonOption = False, workspace: WorkspaceOption = None) -> int:
    """Run scheduled sessions when they are due, until interrupted.

    Workers on several machines share a pool. A session whose worker dies is begun again by another worker of its pool.
    That of the pool "coevo", for a single worker, waits for its next time.

    Example: coevo worker
    """
    from coevo.flows.sessions.session_worker import work

    return work(workspace_at(workspace), pool, as_json)


def _check_zone(timezone: str) -> None:
    # Files of zones that count leap seconds, and folders, have no place in this list, nor with Prefect.
    if timezone not in available_timezones():
        raise CoevoError(f"--timezone: {timezone!r:.60} is not a time zone: write one like Europe/Berlin")


def next_change(zone: str, now: datetime) -> datetime | None:
    """First moment within ``AHEAD`` at which the clocks of a time zone change, or None."""
    zone_info = ZoneInfo(zone)
    start, end = now.replace(second=0, microsecond=0), now + AHEAD
    while start < end and _offset(start, zone_info) == _offset(start + DAY, zone_info):
        start += DAY
    if start >= end:
        return None
    before, after = start, start + DAY
    while after - before > MINUTE:
        middle = before + (after - before) // 2
        before, after = (before, middle) if _offset(middle, zone_info) != _offset(start, zone_info) else (middle, after)
    return after.replace(second=0, microsecond=0)


def _offset(moment: datetime, zone_info: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone_info).utcoffset()


def _row(one: "StoredSchedule") -> dict[str, Any]:
    zone = ZoneInfo(one.schedule.timezone)
    when = None if one.next is None else one.next.astimezone(zone).isoformat(timespec="minutes")
    terms = {option.name: one.schedule.parameters.get(option.name) for option in fields(SessionOptions)}
    return {
        "run": one.run,
        "cron": one.schedule.cron,
        "timezone": one.schedule.timezone,
        "pool": one.schedule.pool,
        **terms,
        "paused": one.paused,
        "next": when,
        "last": one.last,
    }


def _cells(one: "StoredSchedule") -> dict[str, Any]:
    row = _row(one)
    bounds = [f"{row['iterations']} iterations"]
    bounds += [f"{row['max_hours']:g} h"] if row["max_hours"] is not None else []
    bounds += [f"rollback {row['rollback_on_drop']:g}"] if row["rollback_on_drop"] is not None else []
    bounds += [f"{name} {row[name]}" for name in ("notify", "remote") if row[name] is not None]
    bounds += [f"pool {row['pool']}"] if row["pool"] != "coevo" else []
    return {
        "run": row["run"],
        "schedule": f"{row['cron']} {row['timezone']}" if row["cron"] else "once",
        "session": ", ".join(bounds),
        "next": row["next"][:MINUTES].replace("T", " ") if row["next"] else "paused" if row["paused"] else "soon",
        "last": row["last"],
    }


COMMANDS = (worker,)
