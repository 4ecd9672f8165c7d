"""Start of a run, and its continuation: one way for the command line, the Python API, studies and the DVC pipeline.

It checks the run, starts the servers, runs the flow in this process, and prints a summary.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from rich.console import Console

from coevo.configs.load.load import validate
from coevo.configs.run_config import RunConfig
from coevo.flows.console.options import resuming, workspace_option
from coevo.flows.console.output import console
from coevo.flows.console.patience import patience
from coevo.flows.console.progress import Progress
from coevo.flows.console.progress import shown as progress_in
from coevo.flows.console.run_overview import summarise
from coevo.flows.history.run_summaries import RunSummary, unfinished
from coevo.flows.servers.prefect_watch import watching
from coevo.flows.servers.ray_cluster import use_cluster
from coevo.flows.servers.servers import going_on, use_prefect
from coevo.flows.upkeep.branch import FIXED
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.tasks.preflight.forecast import check_fits
from coevo.tasks.preflight.notices import notices
from coevo.tasks.preflight.remedy import Offer
from coevo.tasks.preflight.spending import PolicySpending
from coevo.tasks.publish.reporter import in_stage, reporting_to
from coevo.tasks.run.assemble import environment_of
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.weight_digests import digests
from coevo.utilities.errors import CoevoError

WAITING = 3
"""Exit code of a run that has stopped for approval."""
WAITS = "waits for approval: coevo approve --list {run} shows it, coevo approve {run} [--reject] decides"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a process runs a run.

    Attributes:
        quiet: show no progress.
        overrides: settings that were given beside the recipe, which the new run records.
        brief: leave out the name of the run before it, and the summary after it.
        alone: the process does nothing else, see ``coevo.flows.servers.prefect_watch.watching``.
        max_hours: start no revision that would end later; None for no limit.
        iterations: new number of iterations of the run; None to keep it.
        accept_change: continue although configuration, code or packages have changed.
    """

    quiet: bool = False
    brief: bool = False
    alone: bool = False
    max_hours: float | None = None
    iterations: int | None = None
    accept_change: bool = False
    overrides: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Name of a run and exit code of the process that started or continued it.

    Attributes:
        run: name of the run.
        code: exit code: 0, or ``WAITING`` for a run that waits for approval.
    """

    run: str
    code: int


def start_run(
    config: RunConfig, workspace: Workspace, name: str | None = None, how: RunOptions = RunOptions()
) -> RunEnd:
    """Check a new run, create it, and run it to its end, or until it waits for approval.

    Args:
        config: its configuration, see ``coevo.flows.configure``; its settings count as confirmed.
        workspace: its workspace.
        name: its name; ``<recipe>-<n>`` by default.
        how: how this process runs it.

    Raises:
        CoevoError: the name is taken, the environment or this machine cannot play the run, or no revision was
            committed. Nothing is written in the first two cases.
    """
    if name is not None:
        workspace.check_vacant(name)
    with _playable(config, workspace) as spending:
        earlier = unfinished(config.recipe, workspace)
        paths = workspace.create(name or workspace.next_name(config.recipe), config)
        paths.record_overrides(how.overrides)
        if not how.brief:
            _announce(paths, workspace, earlier, how.quiet)
        _show_spending(spending, how.quiet)
        return _operate(workspace, paths, how)


def resume_run(run: str, workspace: Workspace, how: RunOptions = RunOptions()) -> RunEnd:
    """Check a run, and continue it from its last revision.

    Args:
        run: its name.
        workspace: its workspace.
        how: how this process runs it.

    Raises:
        CoevoError: the run does not exist or has a setting that is not confirmed, the environment or this machine
            cannot play it, another process writes to it, code or settings have changed, or no revision was committed.
    """
    paths = workspace.existing(run)
    config = wanted(paths, how.iterations)
    workspace.trust.demand(run, config)
    with _playable(config, workspace, paths):
        return _operate(workspace, paths, how)


@contextmanager
def _playable(
    config: RunConfig, workspace: Workspace, paths: RunPaths | None = None
) -> Iterator[PolicySpending | None]:
    """Refuse a run that its environment or this machine cannot play, before anything starts.

    The environment is built here, and the flow inside the block shares it.

    Args:
        config: the run.
        workspace: its workspace.
        paths: its files; None for a new run.
    """
    with ExitStack() as stack:
        with patience("the check of the run"):
            use_cluster(config, workspace.root)
            env = stack.enter_context(environment_of(config))
            with in_stage("checks that the run fits this machine"):
                offer = Offer if paths is None else partial(_branched, workspace, paths)
                spending = check_fits(config, env, workspace.root, offer)
        yield spending


def _operate(workspace: Workspace, paths: RunPaths, how: RunOptions) -> RunEnd:
    """Continue a run to its last iteration, or to a limit."""
    shown = console(quiet=how.quiet)
    config = wanted(paths, how.iterations)
    before = _unchanged(workspace, paths, config, how.accept_change)
    _check_not_shorter(before, how.iterations, paths.name)
    lengthen(paths, config.iterations)
    if _is_over(before, config):
        return _finished(workspace, paths, shown)
    for said in notices(config):
        shown.print(said, soft_wrap=True, markup=False)
    with _saying_how_to_go_on(paths.name, shown), progress_in(shown, config.iterations) as progress:
        left = config.iterations - (0 if before is None else before.iteration)
        reached = _play(workspace, paths, progress, left, how)
    after = head_of(workspace, paths)
    if after is None or (before is not None and after.revision == before.revision):
        raise CoevoError(f"{paths.name} committed no revision although iterations remained; see {paths.log}")
    if not (how.quiet or how.brief):
        summarise(workspace, paths)
    return _ended(workspace, paths, after, reached, shown)


def _unchanged(workspace: Workspace, paths: RunPaths, config: RunConfig, accept_change: bool) -> Manifest | None:
    """The run's last revision, or None; raises ``CoevoError`` for a run that waits or whose settings have changed."""
    head = head_of(workspace, paths)
    if head is not None and waits(head):
        raise CoevoError(_waiting(workspace, paths, head))
    if not _is_over(head, config):
        with in_stage("compares settings, code and weights with the last revision"):
            check_unchanged(config, head, paths.name, accept_change, digests(config, workspace.root))
    return head


def _check_not_shorter(head: Manifest | None, iterations: int | None, run: str) -> None:
    """Raise ``CoevoError`` for a new number of iterations below those that a run has done."""
    if head is not None and iterations is not None and iterations < head.iteration:
        raise CoevoError(f"{run} has done {head.iteration} iterations: set --iterations to more")


def _waiting(workspace: Workspace, paths: RunPaths, head: Manifest) -> str:
    return f"{paths.name}@{head.revision} {WAITS.format(run=f'{paths.name}{workspace_option(workspace)}')}"


def _is_over(head: Manifest | None, config: RunConfig) -> bool:
    """Report whether no iteration remains; a run without a revision lacks that of its start, too."""
    return head is not None and head.iteration >= config.iterations


def _play(workspace: Workspace, paths: RunPaths, progress: Progress, left: int, how: RunOptions) -> str | None:
    """Run the flow in this process; return the limit that it reached, or None."""
    use_prefect(workspace.root)
    from coevo.flows.coevolve import coevolve

    with watching(going_on(paths.name), how.alone), reporting_to(progress):
        return coevolve.with_options(flow_run_name=paths.name)(
            paths.name,
            str(workspace.root),
            left,
            how.max_hours,
            accept_change=how.accept_change,
            settings=paths.read_config().model_dump(mode="json"),
        )


def _ended(workspace: Workspace, paths: RunPaths, after: Manifest, reached: str | None, shown: Console) -> RunEnd:
    """Print why the run ended before its last iteration, if it did."""
    if waits(after):
        shown.print(_waiting(workspace, paths, after), soft_wrap=True)
        return RunEnd(paths.name, WAITING)
    if reached is not None:
        again = f"coevo resume {paths.name}{workspace_option(workspace)}"
        shown.print(f"stopped early: {reached}; continue with: {again}", soft_wrap=True)
    return RunEnd(paths.name, 0)


@contextmanager
def _saying_how_to_go_on(run: str, console: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"interrupted: {going_on(run)}", soft_wrap=True)
        raise


def _finished(workspace: Workspace, paths: RunPaths, shown: Console) -> RunEnd:
    from coevo.flows.upkeep.publishing import complete

    complete(workspace, paths)
    total = paths.read_config().iterations
    done = (
        f"{paths.name} has done all of its {total} iterations; see: coevo log {paths.name}{workspace_option(workspace)}"
    )
    shown.print(f"{done}; for more: {resuming(paths.name, total, total, workspace)}", soft_wrap=True)
    return RunEnd(paths.name, 0)


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


def head_of(workspace: Workspace, paths: RunPaths) -> Manifest | None:
    """The run's last revision, or None."""
    if not paths.lineage.exists():
        return None
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        return lineage.history.head()


def _announce(paths: RunPaths, workspace: Workspace, earlier: RunSummary | None, quiet: bool) -> None:
    """Print the name of a new run, and of an earlier one of its recipe that has not ended."""
    shown = console(quiet=quiet)
    shown.print(f"run {paths.name} in {workspace.root}", soft_wrap=True)
    if earlier is not None:
        shown.print(f"({_state(earlier, workspace_option(workspace))})", soft_wrap=True)


def _show_spending(spending: PolicySpending | None, quiet: bool) -> None:
    """Print what a run takes of its policy's endpoint, and its budget."""
    for line in [] if spending is None else spending.lines():
        console(quiet=quiet).print(line, soft_wrap=True, markup=False)


def _state(earlier: RunSummary, option: str) -> str:
    name = earlier.paths.name
    if earlier.process is not None:
        does = "is running:" if earlier.status.status == "running" else "is in use by"
        return f"{name} {does} process {earlier.process}"
    if earlier.status.status == "waiting":
        return f"{name} waits for approval: coevo approve --list {name}{option}"
    return f"{name} is unfinished; to continue it: coevo resume {name}{option}"


def _branched(workspace: Workspace, paths: RunPaths) -> Offer:
    """How settings of a run change: in a branch of its last revision; before there is one, in a new run."""
    head = head_of(workspace, paths)
    if head is None:
        return Offer("start a new run with ")
    branch = f"run `coevo branch {paths.name}@{head.revision} NEW "
    return Offer(branch, f"{workspace_option(workspace)}`", tuple(FIXED))
