"""The ``coevo`` command."""

import faulthandler
import sys
from collections.abc import Sequence

import typer

from configs.errors import CoevoError
from configs.faults import fault
from configs.garbage import collect_seldom
from flows import output
from flows.commands import (
    approve,
    bank,
    branch,
    catalogue,
    compare,
    doctor,
    evaluate,
    fsck,
    gc,
    inspect,
    package,
    play,
    remote,
    report,
    rollback,
    run,
    schedule,
    serve,
    tag,
)
from flows.interrupt import heeded
from flows.settings import WorkspaceOption, standing_in

app = typer.Typer(
    name="coevo",
    help="Train an LLM agent's policy together with its bank of written experience.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
GROUPS = (
    run,
    evaluate,
    inspect,
    compare,
    report,
    rollback,
    approve,
    branch,
    tag,
    fsck,
    gc,
    remote,
    play,
    catalogue,
    doctor,
    schedule,
    serve,
    package,
)


@app.callback()
def _before(context: typer.Context, workspace: WorkspaceOption = None) -> None:
    # Without a docstring, which would take the place of the program's help.
    if workspace is not None:
        context.with_resource(standing_in(workspace))


for group in GROUPS:
    for command in group.COMMANDS:
        app.command()(command)
app.add_typer(bank.app, name="bank")
app.add_typer(schedule.app, name="schedule")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, help if there is none; a user's mistake is one line on standard error and exit code 2."""
    collect_seldom()
    faulthandler.enable(sys.__stderr__ or 2)  # what dies in a library's C code says where
    with heeded():
        _run(sys.argv[1:] if arguments is None else arguments)


def _run(arguments: Sequence[str]) -> None:
    try:
        code = app(args=arguments or ["--help"], prog_name="coevo", standalone_mode=False)
    except typer.TyperException as error:
        _stop(f"{error.format_message().rstrip('.')}: try `{_command(error)} --help`")
    except CoevoError as error:
        _stop(str(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        said = fault(error)
        if said is None:
            raise
        _stop(said)
    sys.exit(code if isinstance(code, int) else 0)


def _command(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    return "coevo" if context is None else context.command_path


def _stop(message: str) -> None:
    output.fault(message)
    sys.exit(2)
