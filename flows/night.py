"""A night: what a schedule runs. It goes on with a run where the last one ended, however that was."""

import re
from dataclasses import replace
from logging import Logger, LoggerAdapter
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State

from configs.errors import CoevoError
from configs.faults import fault
from flows.account import Account
from flows.coevolve import coevolve
from flows.history import held_out
from flows.notification import notify as send
from flows.operate import head_of, lengthen
from flows.restore import restore
from flows.servers import going_on
from flows.watch import watching
from lineage.lineage import Lineage
from lineage.lock import holding_for
from lineage.manifest import Manifest
from lineage.workspace import RunPaths, Workspace
from tasks import telemetry
from tasks.limit import RESERVE, Limit
from tasks.unchanged import check_unchanged
from tasks.waiting import waits

PURPOSE = "a scheduled night"


class Log:
    """A reporter for a run that nobody watches: its lines are read later, on Prefect's pages."""

    def __init__(self, logger: "Logger | LoggerAdapter[Logger]") -> None:
        self._logger = logger

    def note(self, text: str) -> None:
        """Stages are tasks, which Prefect shows."""

    def warn(self, text: str) -> None:
        """One line."""
        self._logger.warning(text)

    def revision(self, manifest: Manifest) -> None:
        """One line."""
        metrics, success = manifest.state["metrics"], held_out(manifest)
        known = {"training": metrics.get("success/train"), "held out": success, "bank": metrics.get("bank/size")}
        said = "".join(f", {name} {value:g}" for name, value in known.items() if value is not None)
        self._logger.info(f"revision {manifest.revision}, iteration {manifest.iteration}{said}")


@flow(name="night", flow_run_name="night of {run}", persist_result=False)
def night(
    run: str,
    workspace: str,
    iterations: int,
    max_hours: float | None = None,
    rollback_on_drop: float | None = None,
    notify: str | None = None,
) -> None:
    """Continue a run for one night.

    Args:
        run: its name.
        workspace: absolute path of the directory that it lives in.
        iterations: most that are played. A run that has not reached its last iteration goes on towards it; one that
            has gets this many more.
        max_hours: after which no revision begins.
        rollback_on_drop: the night is undone where success on a panel ends more than this below its start.
        notify: Prefect notification block, ``type/name``, that is told how it went.

    Raises:
        CoevoError: the run cannot go on; what is committed is safe.
    """
    telemetry.switch_off()
    reporter = Log(get_run_logger())
    place = Workspace(Path(workspace))
    limit = Limit(iterations, max_hours, RESERVE)
    try:
        with holding_for(PURPOSE), watching(going_on(run), alone=True):
            account = play(place, place.existing(run), reporter, limit)
            account = guard(place, account, rollback_on_drop)
    except Exception as error:
        said = str(error) if isinstance(error, CoevoError) else fault(error) or type(error).__name__
        tell(notify, f"coevo: the night of {run} failed", said, reporter)
        raise
    create_markdown_artifact(account.body(), key=artifact_key(run), description=account.subject())
    tell(notify, account.subject(), account.body(), reporter)


def play(place: Workspace, paths: RunPaths, reporter: Log, limit: Limit) -> Account:
    """The iterations of a night; none as long as the run waits for a person, or a setting is not confirmed."""
    place.trust.demand(paths.name, paths.read_config())
    before = head_of(place, paths)
    if before is not None and waits(before):
        return Account(paths.name, history_of(place, paths), before.revision)
    assert limit.iterations is not None
    goal = goal_of(0 if before is None else before.iteration, paths.read_config().iterations, limit.iterations)
    check_unchanged(paths.read_config(), before, paths.name, accept=False)
    lengthen(paths, goal)
    coevolve.with_options(flow_run_name=paths.name)(paths.name, str(place.root), reporter, limit=limit)
    start = 0 if before is None else before.revision
    return Account(paths.name, history_of(place, paths), start, limit.reason)


def goal_of(done: int, goal: int, iterations: int) -> int:
    """The run's last iteration: as it is, until it has been reached; so an interrupted night is made up for."""
    return goal if done < goal else done + iterations


def guard(place: Workspace, account: Account, most: float | None) -> Account:
    """Undo a night in which success fell by more than ``most``; the same account where it did not."""
    fallen = [] if most is None else [panel for panel in account.panels() if panel.fell(most)]
    if not fallen:
        return account
    said = restore(place, place.existing(account.run), account.start)
    falls = ", ".join(f"{panel.name} fell from {panel.start:.3f} to {panel.end:.3f}" for panel in fallen)
    return replace(account, undone=f"Undone since {falls}, by more than {most:g}: {said}")


def history_of(place: Workspace, paths: RunPaths) -> list[Manifest]:
    """All revisions of a run."""
    with Lineage.open(paths.lineage, place.cache) as lineage:
        return lineage.log()


def tell(block: str | None, subject: str, body: str, reporter: Log) -> None:
    """Notify, if there is a block; a night that nobody could be told of is a night all the same."""
    if block is not None:
        told: State[Any] = send(block, subject, body, return_state=True)
        if not told.is_completed():
            reporter.warn(f"nobody was notified: {told.message}")


def artifact_key(run: str) -> str:
    """Prefect's keys hold small letters, digits and dashes."""
    return "night-" + re.sub("[^a-z0-9]+", "-", run.lower()).strip("-")
