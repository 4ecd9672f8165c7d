"""The ``coevo`` command."""

import faulthandler
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from coevo.flows.cli import (
    approve,
    branch,
    catalogue,
    cluster,
    compare,
    doctor,
    envs,
    episodes,
    evaluate,
    explain,
    fsck,
    gateway,
    gc,
    inspect,
    new,
    package,
    play,
    remote,
    report,
    rollback,
    run,
    schedule,
    serve,
    table,
    tag,
)
from coevo.flows.cli.bank import bank
from coevo.flows.cli.studies import ablate
from coevo.flows.console import output
from coevo.flows.console.home import ensure_home
from coevo.flows.console.interrupt import heeded
from coevo.flows.console.options import WorkspaceOption, completing, standing_in
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import missing_extra
from coevo.utilities.part_registry import part_fault
from coevo.utilities.system_faults import fault

app = typer.Typer(
    name="coevo",
    help="Train an LLM agent's policy together with its bank of written experience.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
PANELS = {
    "Runs": (run, evaluate, ablate, schedule),
    "History": (inspect, episodes, explain, compare, table, report, rollback, approve, branch, tag),
    "Workspace": (fsck, gc, remote, serve, doctor),
    "Packages": (package, gateway),
    "Choices": (catalogue, play),
}
"""Modules of commands, by their heading in `coevo --help`."""


def _print_version(wanted: bool) -> None:
    if wanted:
        output.line(f"coevo {version('coevo')}")
        raise typer.Exit


@app.callback()
def _before(
    context: typer.Context,
    workspace: WorkspaceOption = None,
    print_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    # No docstring here: it would replace the program's help.
    if workspace is not None:
        context.with_resource(standing_in(workspace))


for panel, modules in PANELS.items():
    for module in modules:
        for command in module.COMMANDS:
            app.command(rich_help_panel=panel)(command)
app.add_typer(bank.app, name="bank", rich_help_panel="History")
app.add_typer(schedule.app, name="schedule", rich_help_panel="Runs")
app.add_typer(cluster.app, name="cluster", rich_help_panel="Workspace")
app.add_typer(envs.app, name="envs", rich_help_panel="Choices")
app.add_typer(new.app, name="new", rich_help_panel="Choices")


@cache
def _program() -> TyperGroup:
    """All commands with their options, which Typer derives from the functions in 50 ms."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    _finish(program)
    return program


def _finish(group: TyperGroup) -> None:
    """Join the lines of each paragraph of help, which Typer would keep as they are wrapped in the source.

    Arguments that name a run, a recipe or an environment are completed by the shell with those that there are.
    """
    _print_plainly(group)
    for command in group.commands.values():
        command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
        for each in command.params:
            words = completing(each.metavar or str(each.name))
            if words is not None and each.param_type_name == "argument":
                each.shell_complete = words  # type: ignore[assignment, method-assign]
        if isinstance(command, TyperGroup):
            _finish(command)
        elif isinstance(command, TyperCommand):
            _print_plainly(command)


def _print_plainly(command: TyperCommand | TyperGroup) -> None:
    """Print a command's help without marks of a terminal where there shall be none."""
    print_help = command.format_help

    def format_help(*about: Any) -> None:
        from typer import rich_utils  # a tenth of the time of a command that prints no help

        # Typer prints its help on a console of its own, which keeps bold text under NO_COLOR.
        if output.is_plain():
            rich_utils.FORCE_TERMINAL = False
        print_help(*about)

    command.format_help = format_help  # type: ignore[assignment, method-assign]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; without arguments, print the help.

    A user's mistake prints one line on standard error and exits with code 2.
    """
    faulthandler.enable(sys.__stderr__ or 2)  # prints a traceback on a crash in C code
    output.degrade()
    with heeded():
        _run(sys.argv[1:] if arguments is None else arguments)


def _run(arguments: Sequence[str]) -> None:
    try:
        ensure_home()
        code = _program().main(args=list(arguments) or ["--help"], prog_name="coevo", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is an error while it can be told
    except typer.TyperException as error:
        _stop(f"{error.format_message().rstrip('.')}: try `{_command(error)} --help`")
    except CoevoError as error:
        _stop(str(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough
        sys.exit(1)
    except Exception as error:
        said = fault(error) or missing_extra(error) or _misread(error) or part_fault(error)
        if said is None:
            raise
        _stop(said)
    sys.exit(code if isinstance(code, int) else 0)


def _misread(error: Exception) -> str | None:
    """Message for a variable of the environment that Prefect cannot read; None for every other error."""
    settings = str(getattr(error, "title", ""))
    if not (settings.endswith("Settings") and type(error).__module__.startswith("pydantic")):
        return None
    first = error.errors()[0]  # type: ignore[attr-defined]
    ends = "_".join(("", *map(str, first["loc"]))).upper() or "_API_URL"
    named = [name for name in sorted(os.environ) if name.startswith("PREFECT_") and name.endswith(ends)]
    return f"Prefect cannot read {' or '.join(named) or 'its profile'} ({first['msg'][:160]}): correct it"


def _command(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    return "coevo" if context is None else context.command_path


def _stop(message: str) -> None:
    output.fault(message)
    sys.exit(2)
