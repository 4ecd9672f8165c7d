"""``coevo run`` and ``coevo resume``."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig
    from coevo.envs.base import Environment
    from coevo.flows.start_run import RunEnd

RemoteOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Directory or s3://BUCKET/PREFIX where machines share the run."),
]
Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change.")]


@dataclass(frozen=True)
class CompositionOptions:
    """A recipe, or the parts of a pairing, with changed settings."""

    recipe: Annotated[str | None, typer.Argument(help="Name of a shipped recipe, or a .yaml file.")] = None
    overrides: Overrides = None
    env: Annotated[
        str | None, typer.Option(help="Environment in place of a recipe: a name of `coevo envs`, or MODULE:CLASS.")
    ] = None
    method: Annotated[
        str | None, typer.Option(help="Its method, at its paper's values: a name of `coevo methods`.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(help="Its policy: a directory, ORG/NAME of the hub, URL of an endpoint, or such as qwen2.5-7b."),
    ] = None
    on: Annotated[
        str | None, typer.Option(metavar="MACHINE", help="With --dry-run: another machine, for example 4xh200.")
    ] = None

    def composed(self) -> "RunConfig":
        """The configuration.

        Raises:
            CoevoError: it is not possible.
        """
        from coevo.flows.configure import chosen_config

        parts = {"env": self.env, "method": self.method, "model": self.model}
        return chosen_config(self.recipe, parts, self.overrides or [], self.on)


@dataclass(frozen=True)
class ContinueOptions:
    """How far a run continues, and in spite of which changes."""

    iterations: Annotated[int | None, typer.Option(min=0, help="New number of iterations of the run.")] = None
    accept_change: Annotated[
        bool, typer.Option("--accept-change", help="Continue although configuration, code or packages have changed.")
    ] = False
    max_hours: Annotated[
        float | None, typer.Option("--max-hours", min=0.01, help="Start no revision that would end later than this.")
    ] = None


@dataclass(frozen=True)
class RemoteOptions:
    """A remote where the run is continued."""

    remote: RemoteOption = None
    take_over: Annotated[
        bool, typer.Option("--take-over", help="With --remote: take the run's lock from a process that has ended.")
    ] = False


@with_option_groups
def run(
    composition: CompositionOptions,
    name: Annotated[str | None, typer.Option(help="Name of the run; by default <recipe>-<n>.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Estimate time and memory, and play two turns; start no run."),
    ] = False,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> int:
    """Start a run, or estimate its cost with --dry-run.

    A run that does not fit this machine is refused before anything is written; its dry run exits with code 1. A run
    that stops for approval exits with code 3. A recipe is a named composition; --env, --method and --model compose any
    other, whose name is ENV_METHOD_MODEL. It generates and trains on the GPUs of this machine, or of --on.

    Example: coevo run homerules-coevo-rl --name first seed=11 iterations=6

    Example: coevo run --env webshop --method grpo --model qwen2.5-7b --dry-run --on 4xh200
    """
    config, on = composition.composed(), composition.on
    if dry_run:
        from coevo.configs.threads import with_threads

        return _dry_run(config if on else with_threads(config), workspace_at(workspace), on, as_json)
    if on is not None:
        raise CoevoError("--on is for a dry run: add --dry-run, or leave it out")
    from coevo.flows.start_run import RunOptions, start_run

    opened, how = workspace_at(workspace), RunOptions(alone=True, quiet=as_json, overrides=composition.overrides or [])
    if remote is None:
        return _told(start_run(config, opened, name, how), opened, as_json)
    if name is None:
        raise CoevoError("--remote: other machines continue the run by its name: give one with --name")
    opened.check_vacant(name)
    from coevo.flows.remote_run import RemoteClaim, at_remote

    with at_remote(opened, name, remote, RemoteClaim(new=True)):
        return _told(start_run(config, opened, name, how), opened, as_json)


@with_option_groups
def resume(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    extent: ContinueOptions,
    where: RemoteOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> int:
    """Continue a run from its last revision.

    With --remote, the run is fetched first, its revisions are sent while they are made, and no other machine continues
    it meanwhile.

    A run that stops for approval exits with code 3. A run from elsewhere may hold settings that start a program, import
    code or reach a network. Nothing starts before they are confirmed: one by one on a terminal, or by name with
    --trust.

    Example: coevo resume homerules-coevo-rl-1 --iterations 60
    """
    from coevo.flows.console.trust_prompt import confirm_run

    if where.take_over and where.remote is None:
        raise CoevoError("--take-over takes a lock at a remote: name it with --remote")
    workspace = workspace_at(directory)
    from coevo.flows.remote_run import RemoteClaim, at_remote

    with at_remote(workspace, run, where.remote, RemoteClaim(take_over=where.take_over)):
        confirm_run(workspace, run, workspace.existing(run).read_config(), trust)
        from coevo.flows.start_run import RunOptions, resume_run

        how = RunOptions(alone=True, quiet=as_json, **asdict(extent))
        return _told(resume_run(run, workspace, how), workspace, as_json)


def _told(end: "RunEnd", workspace: Workspace, as_json: bool) -> int:
    """Exit code of a run that ended; with ``--json`` its row of ``coevo runs --json`` is printed."""
    if as_json:
        from coevo.flows.console import output
        from coevo.flows.history.run_summaries import run_row, run_summary

        output.document(run_row(run_summary(workspace.existing(end.run), workspace)))
    return end.code


def _dry_run(config: "RunConfig", workspace: Workspace, on: str | None, as_json: bool) -> int:
    from coevo.flows.console import output
    from coevo.flows.console.patience import patience
    from coevo.flows.console.run_overview import dry_run_report, show_dry_run
    from coevo.flows.servers.ray_cluster import use_cluster
    from coevo.models.capacity.devices import here, named
    from coevo.tasks.preflight.forecast import forecast, on_this_machine
    from coevo.tasks.preflight.rehearse import rehearse
    from coevo.tasks.publish.reporter import in_stage
    from coevo.tasks.run.assemble import environment_of

    use_cluster(config, workspace.root)
    with patience("the dry run"), environment_of(config) as env:
        with in_stage("plays the first turns with a random agent"):
            rehearsal = rehearse(config, env)
        with in_stage("forecasts memory, disk and time"):
            found = forecast(config, rehearsal, here(workspace.root) if on is None else named(on))
            found = on_this_machine(found, config) if on is None else found
        said = dry_run_report(config, env, replace(found, problems=(*found.problems, *_table_problems(env))))
    (output.document if as_json else show_dry_run)(said)
    return int(not said["ready"])


def _table_problems(env: "Environment[Any]") -> list[str]:
    """Reason why the gate of a run would stop its table of tasks, if it would; empty for other environments."""
    from coevo.envs.rows.rows_environment import Rows
    from coevo.tasks.publish.reporter import in_stage

    if not isinstance(env, Rows):  # the gate lets them pass, and takes seconds to load
        return []
    with in_stage("checks the table"):
        from coevo.tasks.gates.frame_gate import GateError
        from coevo.tasks.gates.tables import check_table

        try:
            check_table(env, None)
        except GateError as error:
            return [str(error)]
    return []


COMMANDS = (run, resume)
