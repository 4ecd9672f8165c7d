"""Pages of the site that are made of the code and of the files at the top of the repository: a hook of MkDocs."""

import re
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

import coevo
from coevo.configs.load.paper_tables import pairings_page
from coevo.flows.cli.app import app

ROOT = Path(__file__).parents[1]
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files at the top of the repository, and their pages."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in ``docs`` holds."""
    made = {page: (ROOT / name).read_text("utf-8") for name, page in TOP.items()}
    made |= {"command-line.md": command_line(), "python-api.md": python_api(), "pairings.md": pairings_page()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the repository to their pages, and show the file that a block of code is."""
    markdown = re.sub(r"^```(\w+) (\S+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)
    for name, target in TOP.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({target}", markdown)
    if page.file.src_uri in TOP.values():
        markdown = markdown.replace("](docs/", "](")
        markdown = re.sub(r"\[([^\]]*)\]\(AGENTS\.md\)", r"\1", markdown)
    return markdown


def command_line() -> str:
    """Help of all commands."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="coevo"), name="coevo")
    return text.replace("# `coevo`", "# Command line", 1)


def python_api() -> str:
    """Docstrings of what ``import coevo`` offers."""
    names = [f"::: {module}.{name}" for module, name in (coevo._WHERE[name] for name in coevo.__all__)]
    return "# Python\n\n`import coevo` offers these names.\n\n" + "\n\n".join(names) + "\n"
