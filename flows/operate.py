"""Operation of a run from the command line: start servers, run the flow in this process, and print a summary."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from coevo.configs.errors import CoevoError
from coevo.configs.load.load import validate
from coevo.configs.run import RunConfig
from coevo.flows.console.options import resuming, workspace_option
from coevo.flows.console.progress import Progress, shown
from coevo.flows.console.summary import summarise
from coevo.flows.servers.servers import going_on, use_prefect
from coevo.flows.servers.watch import watching
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.tasks.preflight.notices import notices
from coevo.tasks.publish.report import in_stage, reporting_to
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.weights import digests

WAITING = 3
"""Exit code of a run that has stopped for approval."""
WAITS = "waits for approval: coevo approve --list {run} shows it, coevo approve {run} [--reject] decides"


def operate(
    place: Workspace,
    paths: RunPaths,
    console: Console,
    accept_change: bool = False,
    max_hours: float | None = None,
    iterations: int | None = None,
    alone: bool = False,
    brief: bool = False,
) -> int:
    """Continue a run to its last iteration, or until ``max_hours`` are over. Returns the exit code: 0, or ``WAITING``.

    A new number of ``iterations`` is stored once no check prevents the run. ``alone`` is for a process that does
    nothing else, see ``watching``. ``brief`` leaves out the summary at the end.

    Raises:
        CoevoError: no revision could be committed although iterations remained, the run is pending approval, a setting
            is not confirmed, or settings, code or packages have changed.
    """
    config = wanted(paths, iterations)
    before = _checked(place, paths, config, accept_change)
    _check_not_shorter(before, iterations, paths.name)
    lengthen(paths, config.iterations)
    if _is_over(before, config):
        return _finished(place, paths, console)
    for said in notices(config):
        console.print(said, soft_wrap=True, markup=False)
    with (
        _saying_how_to_go_on(paths.name, console),
        shown(console, config.iterations) as progress,
    ):
        left = config.iterations - (0 if before is None else before.iteration)
        reached = _play(place, paths, progress, left, max_hours, accept_change, alone)
    after = head_of(place, paths)
    if after is None or (before is not None and after.revision == before.revision):
        raise CoevoError(f"{paths.name} committed no revision although iterations remained; see {paths.log}")
    if not (console.quiet or brief):
        summarise(place, paths)
    return _ended(place, paths, after, reached, console)


def _checked(place: Workspace, paths: RunPaths, config: RunConfig, accept_change: bool) -> Manifest | None:
    """The run's last revision, or None; raises ``CoevoError`` as ``operate`` does for a run that cannot continue."""
    place.trust.demand(paths.name, config)
    head = head_of(place, paths)
    if head is not None and waits(head):
        raise CoevoError(_waiting(place, paths, head))
    if not _is_over(head, config):
        with in_stage("compares settings, code and weights with the last revision"):
            check_unchanged(config, head, paths.name, accept_change, digests(config, place.root))
    return head


def _check_not_shorter(head: Manifest | None, iterations: int | None, run: str) -> None:
    """Raise ``CoevoError`` for a new number of iterations below those that a run has done."""
    if head is not None and iterations is not None and iterations < head.iteration:
        raise CoevoError(f"{run} has done {head.iteration} iterations: set --iterations to more")


def _waiting(place: Workspace, paths: RunPaths, head: Manifest) -> str:
    return f"{paths.name}@{head.revision} {WAITS.format(run=f'{paths.name}{workspace_option(place)}')}"


def _is_over(head: Manifest | None, config: RunConfig) -> bool:
    """Report whether no iteration remains; a run without a revision lacks that of its start, too."""
    return head is not None and head.iteration >= config.iterations


def _play(
    place: Workspace,
    paths: RunPaths,
    progress: Progress,
    left: int,
    max_hours: float | None,
    accept_change: bool,
    alone: bool,
) -> str | None:
    """Run the flow in this process; return the limit that it reached, or None."""
    use_prefect(place.root)
    from coevo.flows.coevolve import coevolve

    with watching(going_on(paths.name), alone), reporting_to(progress):
        return coevolve.with_options(flow_run_name=paths.name)(
            paths.name, str(place.root), left, max_hours, accept_change=accept_change
        )


def _ended(place: Workspace, paths: RunPaths, after: Manifest, reached: str | None, console: Console) -> int:
    """Print why the run ended before its last iteration, if it did; return the exit code."""
    if waits(after):
        console.print(_waiting(place, paths, after), soft_wrap=True)
        return WAITING
    if reached is not None:
        again = f"coevo resume {paths.name}{workspace_option(place)}"
        console.print(f"stopped early: {reached}; continue with: {again}", soft_wrap=True)
    return 0


@contextmanager
def _saying_how_to_go_on(run: str, console: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"interrupted: {going_on(run)}", soft_wrap=True)
        raise


def _finished(place: Workspace, paths: RunPaths, console: Console) -> int:
    from coevo.flows.upkeep.publishing import complete

    complete(place, paths)
    total = paths.read_config().iterations
    done = f"{paths.name} has done all of its {total} iterations; see: coevo log {paths.name}{workspace_option(place)}"
    console.print(f"{done}; for more: {resuming(paths.name, total, total, place)}", soft_wrap=True)
    return 0


def wanted(paths: RunPaths, iterations: int | None) -> RunConfig:
    """Configuration to continue a run with: its own, optionally with another number of iterations.

    Raises:
        CoevoError: the number does not fit its other settings.
    """
    config = paths.read_config()
    return config if iterations is None else with_iterations(config, iterations, paths.name)


def lengthen(paths: RunPaths, iterations: int) -> None:
    """Store the number of iterations of a run if it changes.

    Raises:
        CoevoError: the number does not fit its other settings, or another process writes to the run.
    """
    with writer_lock(paths):
        if iterations != paths.read_config().iterations:
            paths.write_config(wanted(paths, iterations))


def with_iterations(config: RunConfig, iterations: int, run: str) -> RunConfig:
    """A run's configuration with another number of iterations.

    Raises:
        CoevoError: the number does not fit its other settings.
    """
    return validate({**config.model_dump(mode="json"), "iterations": iterations}, source=run)


def head_of(place: Workspace, paths: RunPaths) -> Manifest | None:
    """The run's last revision, or None."""
    if not paths.lineage.exists():
        return None
    with Lineage.open(paths.lineage, place.cache) as lineage:
        return lineage.head()
