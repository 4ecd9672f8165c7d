"""``coevo envs``: the installed environments, and a check of one."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from coevo.envs.shipped import GROUP, SHIPPED, ShippedEnvironment
from coevo.flows.console import output
from coevo.flows.console.options import EnvironmentOptions, JsonOption, with_option_groups
from coevo.utilities.errors import CoevoError, counted
from coevo.utilities.part_registry import installed

READY = "ready"
app = typer.Typer(no_args_is_help=False)


@app.callback(invoke_without_command=True)
def envs(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the environments, those of installed packages too, or check one.

    The status of an environment is `ready`, or the command that installs what it lacks.

    Example: coevo envs
    """
    if context.invoked_subcommand is not None:
        return
    rows = [_shipped(name, each) for name, each in SHIPPED.items()]
    rows += [_installed(name) for name in installed(GROUP) if name not in SHIPPED]
    rows.sort(key=lambda row: row["name"])
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("name", "status", "description"))


@app.command()
@with_option_groups
def check(
    chosen: EnvironmentOptions,
    tasks: Annotated[int, typer.Option(min=1, max=1000, help="Training tasks to play.")] = 4,
    action: Annotated[
        list[str] | None, typer.Option("--action", help="Action to draw from; repeat the option for more.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of tasks and actions.")] = 0,
    as_json: JsonOption = False,
) -> int:
    """Check that an environment keeps the promises of its interface, and measure its speed.

    One line per check, with a remedy; exit code 1 if a check fails.

    Example: coevo envs check homerules level=2
    """

    from coevo.envs.registry import make
    from coevo.flows.console.patience import patience
    from coevo.tasks.checks.environment_check import check_environment
    from coevo.tasks.publish.reporter import in_stage

    with ExitStack() as stack:
        stack.enter_context(patience("the check of the environment"))
        config = chosen.loaded()
        with in_stage("builds the environment"):
            made = make(config)
        stack.callback(made.close)
        with in_stage(f"checks it on {counted(tasks, 'task')}"):
            results = check_environment(made, tasks, action or (), seed)
    if as_json:
        output.document([{"name": each.name, "passed": each.passed, "text": each.text} for each in results])
    else:
        for each in results:
            output.line(str(each))
    return int(not all(each.passed for each in results))


def _shipped(name: str, env: ShippedEnvironment) -> dict[str, str]:
    return {"name": name, "status": env.remedy or READY, "description": _description(env.summary, env.panels)}


def _installed(name: str) -> dict[str, str]:
    """Row of an environment of another package, which has to be imported."""
    from coevo.envs.registry import find

    try:
        found = find(name)
    except CoevoError as error:
        return {"name": name, "status": "cannot be used", "description": str(error)}
    summary = (found.__doc__ or "").strip().partition("\n")[0]
    return {"name": name, "status": READY, "description": _description(summary, tuple(found.panels))}


def _description(summary: str, panels: Sequence[str]) -> str:
    return f"{summary} Panels: {', '.join(panels)}."
