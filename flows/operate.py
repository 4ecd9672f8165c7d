"""Operating a run from the command line: servers up, the flow in this process, and a summary at the end."""

from contextlib import closing

from rich.console import Console

from configs.errors import CoevoError
from flows.progress import Progress
from flows.servers import prefect_in_use, use_prefect
from flows.summary import summarise
from lineage.lineage import Lineage
from lineage.manifest import Manifest
from lineage.workspace import RunPaths, Workspace


def operate(place: Workspace, paths: RunPaths, console: Console, accept_change: bool = False) -> int:
    """Continue a run to its last iteration. Returns the exit code.

    Raises:
        CoevoError: no revision could be committed although iterations remained.
    """
    config = paths.read_config()
    before = head_of(place, paths)
    if before is not None and before.iteration >= config.iterations:
        return _finished(place, paths, console)
    use_prefect(place.root)
    from flows.coevolve import coevolve

    with closing(Progress(console, config.iterations)) as progress, prefect_in_use():
        coevolve.with_options(flow_run_name=paths.name)(paths.name, str(place.root), progress, accept_change)
    after = head_of(place, paths)
    if after is None or (before is not None and after.revision == before.revision):
        raise CoevoError(f"{paths.name} committed no revision although iterations remained; see {paths.log}")
    if not console.quiet:
        summarise(place, paths)
    return 0


def _finished(place: Workspace, paths: RunPaths, console: Console) -> int:
    from flows.publishing import publish_the_rest

    publish_the_rest(place, paths)
    done = f"{paths.name} has done all of its {paths.read_config().iterations} iterations"
    console.print(f"{done}; see: coevo log {paths.name}")
    return 0


def head_of(place: Workspace, paths: RunPaths) -> Manifest | None:
    """The run's last revision; None where there is none yet."""
    if not paths.lineage.is_dir():
        return None
    with Lineage.open(paths.lineage, place.cache) as lineage:
        return lineage.head()
