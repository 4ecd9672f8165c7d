"""Operating a run from the command line: servers up, the flow in this process, and a summary at the end."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rich.console import Console

from configs.admission import notice
from configs.errors import CoevoError
from configs.load import validate
from configs.run import RunConfig
from flows.progress import Progress
from flows.servers import going_on, use_prefect
from flows.summary import summarise
from flows.watch import watching
from lineage.lineage import Lineage
from lineage.lock import writer_lock
from lineage.manifest import Manifest
from lineage.workspace import RunPaths, Workspace
from tasks.unchanged import check_unchanged
from tasks.waiting import waits

WAITING = 3
"""Exit code of a run that has stopped to wait for a person."""
WAITS = "waits for approval: coevo approve --list {run} shows what of, coevo approve {run} [--reject] decides"


def operate(
    place: Workspace,
    paths: RunPaths,
    console: Console,
    accept_change: bool = False,
    max_hours: float | None = None,
    iterations: int | None = None,
    alone: bool = False,
) -> int:
    """Continue a run to its last iteration, or until ``max_hours`` are over. Returns the exit code: 0, or ``WAITING``.

    Another number of ``iterations`` is kept once nothing keeps the run from going on. ``alone`` is for a process that
    does nothing else, see ``watching``.

    Raises:
        CoevoError: no revision could be committed although iterations remained, it waits for approval, a setting is
            not confirmed, or settings, code or packages have changed.
    """
    config = wanted(paths, iterations)
    place.trust.demand(paths.name, config)
    before = head_of(place, paths)
    if before is not None and waits(before):
        raise CoevoError(f"{paths.name}@{before.revision} {WAITS.format(run=paths.name)}")
    over = before is not None and before.iteration >= config.iterations
    if not over:
        check_unchanged(config, before, paths.name, accept_change)
    lengthen(paths, config.iterations)
    if over:
        return _finished(place, paths, console)
    if config.bank is not None and (said := notice(config.bank.admission)) is not None:
        console.print(said, soft_wrap=True)
    with _saying_how_to_go_on(paths.name, console), closing(Progress(console, config.iterations)) as progress:
        use_prefect(place.root)
        from flows.coevolve import coevolve
        from tasks.limit import Limit

        limit = Limit(hours=max_hours)
        with watching(going_on(paths.name), alone):
            coevolve.with_options(flow_run_name=paths.name)(paths.name, str(place.root), progress, accept_change, limit)
    after = head_of(place, paths)
    if after is None or (before is not None and after.revision == before.revision):
        raise CoevoError(f"{paths.name} committed no revision although iterations remained; see {paths.log}")
    if not console.quiet:
        summarise(place, paths)
    if waits(after):
        console.print(f"{paths.name}@{after.revision} {WAITS.format(run=paths.name)}", soft_wrap=True)
        return WAITING
    if limit.reason is not None:
        console.print(f"stopped early: {limit.reason}; go on with: coevo resume {paths.name}", soft_wrap=True)
    return 0


@contextmanager
def _saying_how_to_go_on(run: str, console: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"interrupted: {going_on(run)}", soft_wrap=True)
        raise


def _finished(place: Workspace, paths: RunPaths, console: Console) -> int:
    from flows.publishing import publish_the_rest

    publish_the_rest(place, paths)
    done = f"{paths.name} has done all of its {paths.read_config().iterations} iterations"
    console.print(f"{done}; see: coevo log {paths.name}", soft_wrap=True)
    return 0


def wanted(paths: RunPaths, iterations: int | None) -> RunConfig:
    """The configuration that a run is to go on with: its own, or that with another last iteration.

    Raises:
        CoevoError: it does not go with that many.
    """
    config = paths.read_config()
    return config if iterations is None else with_iterations(config, iterations, paths.name)


def lengthen(paths: RunPaths, iterations: int) -> None:
    """Keep the last iteration of a run, where it is another one.

    Raises:
        CoevoError: its configuration does not go with that many, or another process writes to the run.
    """
    with writer_lock(paths):
        if iterations != paths.read_config().iterations:
            paths.write_config(wanted(paths, iterations))


def with_iterations(config: RunConfig, iterations: int, run: str) -> RunConfig:
    """A run's configuration with another last iteration.

    Raises:
        CoevoError: it does not go with that many.
    """
    return validate({**config.model_dump(mode="json"), "iterations": iterations}, source=run)


def head_of(place: Workspace, paths: RunPaths) -> Manifest | None:
    """The run's last revision; None where there is none yet."""
    if not paths.lineage.exists():
        return None
    with Lineage.open(paths.lineage, place.cache) as lineage:
        return lineage.head()
