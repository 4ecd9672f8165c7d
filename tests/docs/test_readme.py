"""The pages name commands, options, recipes, targets and files that exist."""

import re
from pathlib import Path

import pytest
import typer

from coevo.configs.load.shipped_files import names
from coevo.flows.cli.app import app, main

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = ("configs", "envs", "flows", "lineage", "memory", "models", "tasks", "utilities")
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
COMMANDS = sorted({line for text in TEXT.values() for line in re.findall(r"^\$ coevo ([^#\n]+)", text, re.MULTILINE)})
QUOTED = [(page, line) for page, text in TEXT.items() for line in re.findall(r"`coevo ([a-z][^`]*)`", text)]
PATHS = [
    (page, path)
    for name in ("AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md")
    for page in [ROOT / name]
    for path in re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.(?:py|yaml|txt|md))?)`", TEXT[page])
]
LINKS = [(page, link) for page, text in TEXT.items() for link in re.findall(r"\]\((?!http)([^)#]+)", text)]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_takes_what_it_is_shown_with(line, capsys):
    words = line.split()
    names = words[:2] if words[0] in ("bank", "schedule", "cluster") or words[:2] == ["envs", "check"] else words[:1]
    with pytest.raises(SystemExit) as stop:
        main([*names, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words if word.startswith("--"))


def test_every_command_of_the_text_is_in_the_command_line():
    """Commands quoted in prose and tables, by their first word, or two where a command has commands."""
    groups = typer.main.get_command(app).commands
    for page, line in QUOTED:
        first, *rest = re.findall(r"[a-z-]+", line)
        assert first in groups, f"{page.name}: coevo {line}"
        below = getattr(groups.get(first), "commands", None)
        assert not (below and rest) or rest[0] in below, f"{page.name}: coevo {line}"


def test_readme_and_guides_start_recipes_that_exist():
    text = TEXT[ROOT / "README.md"] + TEXT[ROOT / "docs/guides.md"]
    named = set(re.findall(r"coevo run ([a-z0-9]+-[a-z0-9-]+)(?!\S)", text))
    assert len(named) > 7
    assert named - {"my-recipe"} <= set(names("recipes"))


@pytest.mark.parametrize(("page", "link"), LINKS, ids=lambda value: getattr(value, "name", value))
def test_a_link_leads_to_a_file(page, link):
    assert (page.parent / link).is_file()


@pytest.mark.parametrize(("page", "path"), PATHS, ids=lambda value: getattr(value, "name", value))
def test_a_path_that_a_page_names_is_there(page, path):
    """A path from the repository's root, or, in the table of rooms, from a layer's folder."""
    assert (ROOT / path).exists() or any((ROOT / room / path).exists() for room in ROOMS)


def test_the_two_commands_come_first_and_every_target_is_there():
    readme, targets = TEXT[ROOT / "README.md"], (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"\bmake ([a-z-]+)", readme)
    assert named[:2] == ["run", "test"]
    assert all(re.search(rf"^{target}:", targets, re.MULTILINE) for target in named)
