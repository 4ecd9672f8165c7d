"""Options that belong together reach a command as one object."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from coevo.flows.console.options import with_option_groups


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(min=1, help="Width in metres.")]
    height: Annotated[int, typer.Option(help="Height in metres.")] = 2


def invoked(*arguments):
    app, given = typer.Typer(), []

    @app.command()
    @with_option_groups
    def build(name: str, size: Size, dry_run: bool = False) -> int:
        """Build a house."""
        given.append((name, size, dry_run))
        return 3

    return CliRunner().invoke(app, arguments, standalone_mode=False), given


def test_the_fields_of_a_group_are_options_and_the_command_gets_the_group():
    done, given = invoked("barn", "--width", "4", "--dry-run")
    assert given == [("barn", Size(4, 2), True)]
    assert done.return_value == 3


def test_options_of_a_group_are_checked_like_others():
    assert invoked("barn")[0].exception is not None
    assert invoked("barn", "--width", "0")[0].exception is not None
    assert invoked("barn", "--width", "1", "--height", "x")[1] == []


def test_help_lists_them_where_the_group_stands():
    shown = invoked("--help")[0].output
    assert "Build a house." in shown
    assert shown.index("--width") < shown.index("Height in metres.") < shown.index("--dry-run")
