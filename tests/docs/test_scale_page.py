"""The page on several machines: its guide is what the test of a second machine runs, its files and names exist."""

import re
from pathlib import Path

from support.second_machine import guide
from typer.main import get_command

from coevo.flows.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_the_guide_starts_a_run_here_and_continues_it_there():
    assert [line[0] for line in guide()] == ["run", "resume", "status"]
    assert {line[line.index("--remote") + 1] for line in guide()[:2]} == {"s3://team/coevo"}


def test_every_command_and_option_of_the_page_exists():
    commands = get_command(app).commands
    for line in re.findall(r"^\$ coevo (.+)$", PAGE, re.M):
        words = line.partition(" #")[0].split()
        command = commands[words[0]]
        command = command.commands[words[1]] if hasattr(command, "commands") else command
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_the_files_and_variables_that_it_names_are_used():
    assert (ROOT / "infra" / "compose.yaml").is_file()
    used = (ROOT / "tests" / "support" / "postgres.py").read_text() + (
        ROOT / "tests" / "flows" / "servers" / "test_postgres.py"
    ).read_text()
    for variable in re.findall(r"^\$ export (\w+)=", PAGE, re.M):
        assert variable in used
