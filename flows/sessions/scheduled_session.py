"""Session: the flow that a schedule starts. It continues a run from its last committed revision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from logging import Logger, LoggerAdapter
from typing import Any
from uuid import UUID

from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State

from coevo.flows.coevolve import coevolve
from coevo.flows.history.history import trail
from coevo.flows.remote_run import RemoteClaim, at_remote
from coevo.flows.servers.end_state import name_end, session_workspace
from coevo.flows.servers.prefect_watch import watching
from coevo.flows.servers.servers import going_on
from coevo.flows.sessions.notification import notify as send
from coevo.flows.start_run import head_of, lengthen
from coevo.flows.upkeep.branch import restore
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import holding_for
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.tasks.publish.prefect import dashed, tag
from coevo.tasks.publish.reporter import headline, reporting_to
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.weight_digests import digests
from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import fault

PURPOSE = "a scheduled session"
BEGINNING = ("coevo.goal", "coevo.revision", "coevo.iteration")
"""Labels of a flow run: last iteration of the run in its session, and where the session first began."""
MAX_BEGINNINGS = 5
"""Most times that a session of a shared pool begins."""


class Log:
    """Reporter of a scheduled session, which writes to Prefect's logs."""

    def __init__(self, logger: "Logger | LoggerAdapter[Logger]") -> None:
        self._logger = logger

    def note(self, text: str) -> None:
        """Log nothing: Prefect shows stages as tasks."""

    def warn(self, text: str) -> None:
        """Log one line."""
        self._logger.warning(text)

    def revision(self, manifest: Manifest) -> None:
        """Log one line."""
        self._logger.info(headline(manifest))


@dataclass(frozen=True, slots=True)
class PanelSuccess:
    """Success on a panel, before a session and at its end; None if it was not played."""

    name: str
    start: float | None
    end: float | None

    def fell(self, by: float) -> bool:
        """Return True if success dropped by more than ``by``."""
        return self.start is not None and self.end is not None and self.start - self.end > by


@dataclass(frozen=True)
class Account:
    """Summary of a session.

    Attributes:
        run: name of the run.
        history: all revisions of the run up to the session's last one, without a rollback of the session.
        start: revision that the session continued from; 0 for a run's first session.
        reason: reason to stop before the run's last iteration, or None.
        undone: description of the rollback, or None.
    """

    run: str
    history: Sequence[Manifest]
    start: int
    reason: str | None = None
    undone: str | None = None

    @property
    def waits(self) -> bool:
        """True if the run is pending approval."""
        return self.undone is None and waits(self.history[-1])

    @property
    def iterations(self) -> int:
        """Number of iterations of the session."""
        return self.history[-1].iteration - self.history[self.start].iteration

    def panels(self) -> list[PanelSuccess]:
        """Success on the panels that the run is evaluated on."""
        evaluation = self.history[-1].state["config"]["evaluation"]
        led = trail(self.history)
        before = _measured(manifest for manifest in trail(self.history[: self.start + 1]))
        after = _measured(manifest for manifest in led if manifest.revision > self.start)
        names = (*evaluation["panels"], *evaluation["final_panels"])
        return [
            PanelSuccess(name, before.get(name), after.get(name)) for name in names if name in before or name in after
        ]

    def subject(self) -> str:
        """Summary in one line."""
        if self.undone is not None:
            return f"coevo: {self.run} was rolled back to revision {self.start}"
        if self.waits:
            return f"coevo: {self.run} waits for approval"
        return f"coevo: {self.run} played {self.iterations} iterations"

    def body(self) -> str:
        """Summary in Markdown, readable without rendering."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        head = self.history[-1]
        goal = head.state["config"]["iterations"]
        yield f"Run {self.run}: revision {self.start} to {head.revision}, {self.iterations} iterations this session."
        if self.undone is None:
            yield f"Iteration {head.iteration} of {goal}."
        if self.waits:
            name = f"{self.run}@{head.revision}"
            yield f"It waits for approval: `coevo approve {name}` or `coevo approve {name} --reject`."
        for said in (self.undone, None if self.waits else self.reason and f"Stopped early: {self.reason}."):
            if said:
                yield said
        yield from self._table()

    def _table(self) -> Iterator[str]:
        yield ""
        yield "| panel | before | after |"
        yield "|---|---|---|"
        for panel in self.panels():
            yield f"| {panel.name} | {_shown(panel.start)} | {_shown(panel.end)} |"


def flow_run_name() -> str:
    """Name of a flow run, ``RUN 2026-01-31 02:00``: the run, and the scheduled UTC time of the session."""
    return f"{runtime.flow_run.parameters['run']} {runtime.flow_run.scheduled_start_time:%Y-%m-%d %H:%M}"


@flow(name="session", flow_run_name=flow_run_name, persist_result=False, on_completion=[name_end])
def session(
    run: str,
    workspace: str,
    iterations: int,
    max_hours: float | None = None,
    rollback_on_drop: float | None = None,
    notify: str | None = None,
    remote: str | None = None,
) -> None:
    """Continue a run for one session.

    Args:
        run: name of the run.
        workspace: absolute path of its workspace.
        iterations: maximum iterations of the session. A run that has not reached its last iteration continues towards
            it; one that has gets this many more.
        max_hours: hours of the session; no revision begins that would end later.
        rollback_on_drop: largest drop of success on a panel; after a larger one the session is rolled back.
        notify: Prefect notification block, ``type/name``, that reports the session.
        remote: address at which the run is shared; it is continued in the workspace of the worker.

    Raises:
        CoevoError: the run cannot continue; committed revisions are safe.
    """
    reporter = Log(get_run_logger())
    opened = session_workspace(workspace, remote)
    try:
        _check_beginnings(run)
        with (
            holding_for(PURPOSE),
            watching(going_on(run), alone=True),
            reporting_to(reporter),
            at_remote(opened, run, remote, RemoteClaim(if_lost=True, purpose=PURPOSE)),
        ):
            tag(run, opened.existing(run).read_config().recipe)
            account = play(opened, opened.existing(run), reporter, iterations, max_hours)
            account = guard(opened, account, rollback_on_drop)
    except Exception as error:
        said = str(error) if isinstance(error, CoevoError) else fault(error) or type(error).__name__
        send_notification(notify, f"coevo: the session of {run} failed", said, reporter)
        raise
    create_markdown_artifact(account.body(), key=artifact_key(run), description=account.subject())
    send_notification(notify, account.subject(), account.body(), reporter)


def _check_beginnings(run: str) -> None:
    """Raise ``CoevoError`` for a session whose worker has died each time: it would die for ever."""
    if runtime.flow_run.run_count > MAX_BEGINNINGS:
        raise CoevoError(f"{run}: the worker of this session died {MAX_BEGINNINGS} times: see its log and its memory")


def play(workspace: Workspace, paths: RunPaths, reporter: Log, iterations: int, max_hours: float | None) -> Account:
    """Play the iterations of a session; none while the run is pending approval or a setting is not confirmed."""
    workspace.trust.demand(paths.name, paths.read_config())
    before = head_of(workspace, paths)
    if before is not None and waits(before):
        return Account(paths.name, history_of(workspace, paths), before.revision)
    revision, played = (0, 0) if before is None else (before.revision, before.iteration)
    config = paths.read_config()
    goal, first, done = settled(goal_of(played, config.iterations, iterations), revision, played)
    check_unchanged(config, before, paths.name, accept=False, weights=digests(config, workspace.root))
    lengthen(paths, goal)
    with reporting_to(reporter):
        reached = coevolve.with_options(flow_run_name=paths.name)(
            paths.name,
            str(workspace.root),
            max(0, iterations - (played - done)),
            max_hours,
            unattended=True,
            settings=config.model_dump(mode="json"),
        )
    return Account(paths.name, history_of(workspace, paths), first, reached)


def goal_of(done: int, goal: int, iterations: int) -> int:
    """Last iteration of the run: unchanged until it is reached, so the next session makes up for an interrupted one."""
    return goal if done < goal else done + iterations


def settled(goal: int, revision: int, iteration: int) -> tuple[int, int, int]:
    """The run's last iteration in this session, and the revision and iteration at which the session began.

    They are those of its first beginning, if another worker begins it again: it plays no more than it was to play, and
    is compared with what was before it. Prefect keeps them.
    """
    found = (goal, revision, iteration)
    if runtime.flow_run.id is None:
        return found
    with get_client(sync_client=True) as client:
        labels = client.read_flow_run(UUID(runtime.flow_run.id)).labels
        known = [each for name in BEGINNING if isinstance(each := labels.get(name), int)]
        if len(known) == len(BEGINNING):  # another machine may lack what was not sent
            return known[0], min(known[1], revision), min(known[2], iteration)
        client.update_flow_run_labels(UUID(runtime.flow_run.id), dict(zip(BEGINNING, found, strict=True)))
    return found


def guard(workspace: Workspace, account: Account, most: float | None) -> Account:
    """Roll back a session in which success fell by more than ``most``, and return its summary."""
    fallen = [] if most is None else [panel for panel in account.panels() if panel.fell(most)]
    if not fallen:
        return account
    paths = workspace.existing(account.run)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        lost = lineage.artifacts.lost(account.start)  # nobody is there to choose another revision
    said: list[str] = []
    restore(workspace, paths, account.start, said.append, lost)
    falls = ", ".join(f"{panel.name} fell from {panel.start:.3f} to {panel.end:.3f}" for panel in fallen)
    return replace(account, undone=f"Rolled back because {falls}, by more than {most:g}: {said[0]}")


def history_of(workspace: Workspace, paths: RunPaths) -> list[Manifest]:
    """All revisions of a run."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        return lineage.history.log()


def send_notification(block: str | None, subject: str, body: str, reporter: Log) -> None:
    """Send a notification if a block is given; a failure is a warning and does not fail the session."""
    if block is not None:
        state: State[Any] = send(block, subject, body, return_state=True)
        if not state.is_completed():
            reporter.warn(f"no notification was sent: {state.message}")


def artifact_key(run: str) -> str:
    """Key of the artifact of the run's sessions."""
    return f"session-{dashed(run)}"


def _measured(manifests: Iterator[Manifest]) -> dict[str, float]:
    """Last success per panel in these revisions."""
    return {
        name.removeprefix("agent/success/"): value
        for manifest in manifests
        for name, value in manifest.metrics.items()
        if name.startswith("agent/success/")
    }


def _shown(success: float | None) -> str:
    return "not played" if success is None else f"{success:.3f}"
