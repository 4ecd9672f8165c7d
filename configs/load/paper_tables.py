"""The papers' tables as pairings: ``configs/papers.yaml``, one pairing for each row of a table and environment."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field

from coevo.configs.base import Config
from coevo.configs.load.load import mapping_of
from coevo.configs.load.pairing import Pairing
from coevo.configs.load.shipped_files import ROOT, shipped
from coevo.configs.study_config import StudyConfig

PaperText = Annotated[str, Field(min_length=1, max_length=300)]
RowSettings = Annotated[tuple[Annotated[str, Field(pattern=r"^[^=\s]+=")], ...], Field(max_length=20)]
BASELINES = ("grpo", "experience-only")
"""Methods beside which any other is read: an update without memory, and a frozen policy with a bank."""
NOT_HERE = "environment not in this version"


class RowConfig(Config):
    """A row of a table: a method under the name that the paper gives it."""

    name: PaperText
    """Name in the paper."""
    method: PaperText
    """Method here."""
    model: PaperText | None = None
    """Model of the row; null for that of the table."""
    settings: RowSettings = ()
    """Settings of the row, as ``KEY=VALUE``."""
    differs: PaperText | None = None
    """Differences of this row alone."""


class TableConfig(Config):
    """A table of a paper."""

    table: PaperText
    """Its name in the paper."""
    envs: tuple[PaperText, ...] = Field(min_length=1, max_length=100)
    """Environments, for each of which all rows hold."""
    model: PaperText
    """Model of its rows."""
    settings: RowSettings = ()
    """Settings of all rows."""
    differs: PaperText | None = None
    """Differences of all rows."""
    others: tuple[PaperText, ...] = Field(default=(), max_length=100)
    """Methods of the paper's table that this project lacks."""
    rows: tuple[RowConfig, ...] = Field(min_length=1, max_length=1000)
    """Rows."""


class PaperConfig(Config):
    """A paper."""

    paper: PaperText
    """Its method."""
    tables: tuple[TableConfig, ...] = Field(min_length=1, max_length=100)
    """Its tables whose rows are runs."""


class DiffersConfig(Config):
    """Differences that hold for an environment, a model or a method wherever it stands."""

    envs: Mapping[str, PaperText]
    """By environment."""
    models: Mapping[str, PaperText]
    """By model."""
    methods: Mapping[str, PaperText]
    """By method."""


class PapersConfig(Config):
    """All tables."""

    differs: DiffersConfig
    """Differences from the papers."""
    papers: tuple[PaperConfig, ...] = Field(max_length=100)
    """Papers."""


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One row of a paper's table in one environment.

    Attributes:
        paper: method of the paper.
        table: name of the table there.
        name: name of the row there.
        pairing: environment, method and model here.
        settings: settings as ``KEY=VALUE``.
        shared: what is different here in all rows of the environment, and of the table.
        own: what is different here in this row, and why.
    """

    paper: str
    table: str
    name: str
    pairing: Pairing
    settings: tuple[str, ...]
    shared: tuple[str, ...]
    own: tuple[str, ...]

    @property
    def is_here(self) -> bool:
        """True if this version has the environment."""
        return self.pairing.env in shipped("envs")

    @property
    def command(self) -> str:
        """Command that starts it; why there is none where the environment is not in this version."""
        if not self.is_here:
            return NOT_HERE
        parts = (("--env", self.pairing.env), ("--method", self.pairing.method), ("--model", self.pairing.model))
        return shlex.join(["coevo", "run", *(word for part in parts for word in part), *self.settings])


@cache
def papers() -> PapersConfig:
    """The content of ``configs/papers.yaml``."""
    return PapersConfig.model_validate(mapping_of(ROOT / "papers.yaml", "list of papers"), strict=False)


def paper_rows() -> list[PaperRow]:
    """All rows, in the order of papers, tables, environments and rows."""
    return [row for paper in papers().papers for table in paper.tables for row in _rows(paper.paper, table)]


def _rows(paper: str, table: TableConfig) -> Iterator[PaperRow]:
    known = papers().differs
    for env in table.envs:
        shared = _given(known.envs.get(env), table.differs)
        for row in table.rows:
            pairing = Pairing(env, row.method, row.model or table.model)
            own = _given(known.models.get(pairing.model), known.methods.get(row.method), row.differs)
            yield PaperRow(paper, table.table, row.name, pairing, (*table.settings, *row.settings), shared, own)


def _given(*notes: str | None) -> tuple[str, ...]:
    return tuple(note for note in notes if note)


def table_studies() -> dict[str, tuple[str, TableConfig, str]]:
    """Name of the study of each table in each environment: paper, table and environment."""
    return {
        _slug(f"{paper.paper.partition(' ')[0]}-{table.table}-{env}"): (paper.paper, table, env)
        for paper in papers().papers
        for table in paper.tables
        for env in table.envs
    }


def table_study(name: str, model: str | None, panel: str) -> StudyConfig:
    """A table of a paper in one environment, as a study whose arms are its rows, with both baselines.

    Args:
        name: its name, see ``table_studies``.
        model: model of all rows, those that have another one left out; None for the table's own.
        panel: that the rows are compared by.
    """
    paper, table, env = table_studies()[name]
    rows = [row for row in table.rows if row.model is None]
    played = {(row.method, row.settings): row.name for row in reversed(rows)}
    own = {*played.values()}
    missing = [method for method in BASELINES if method not in {row.method for row in rows}]
    measured = [each for each in table.settings if each.startswith("evaluation.")]  # of a bank that a baseline may lack
    arms = [
        {
            "name": _slug(said),
            "settings": [*measured, *settings] if said in own else [],
            "pairing": (env, method, model or table.model),
        }
        for (method, settings), said in (
            *reversed(played.items()),
            *(((each, ()), f"baseline-{each}") for each in missing),
        )
    ]
    return StudyConfig.model_validate_json(
        json.dumps(
            {
                "name": name,
                "paper": paper,
                "figure": table.table,
                "finding": f"No claim: the rows of {table.table} on {env}.",
                "recipe": "/".join((env, "method", model or table.model)),
                "settings": [each for each in table.settings if each not in measured],
                "arms": arms,
                "seeds": 3,
                "metrics": [{"name": f"agent/success/{panel}", "claimed": False}],
            }
        )
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", text.lower().replace("→", "-then-")).strip("-")[:40]


def pairings_page() -> str:
    """The page of all rows, in Markdown."""
    lines = [HEAD]
    for paper in papers().papers:
        lines.append(f"\n## {paper.paper}\n")
        for table in paper.tables:
            lines += [f"\n### {table.table}\n", *_notes(table), *_markdown(list(_rows(paper.paper, table)))]
            lines += ["", *_cells(table)]
    return "\n".join(lines) + "\n"


def _notes(table: TableConfig) -> Iterator[str]:
    """Differences of all rows of an environment, or of the table."""
    notes = {env: papers().differs.envs.get(env) for env in table.envs} | {"all rows": table.differs}
    yield from (f"- {about}: {note}" for about, note in notes.items() if note)
    yield ""


def _cells(table: TableConfig) -> Iterator[str]:
    """Which cells of a table one command can run, and what is missing for the others."""
    own = [row for row in table.rows if row.model is not None]
    for name, (_, each, env) in table_studies().items():
        if each is table and env in shipped("envs"):
            count = len(table.rows) - len(own)
            runs = f"`coevo ablate {name} --model DIR` runs {count} of its {len(table.rows) + len(table.others)} rows"
            yield f"- {env}: {runs}."
    if own:
        yield f"- Another model, by the command of the row: {', '.join(row.name for row in own)}."
    if table.others:
        yield f"- Not part of this project: {', '.join(table.others)}."


def _markdown(rows: list[PaperRow]) -> Iterator[str]:
    yield "| environment | row | method | command | what differs, and why |\n|---|---|---|---|---|"
    for row in rows:
        command = f"`{row.command}`" if row.is_here else row.command
        yield f"| {row.pairing.env} | {row.name} | {row.pairing.method} | {command} | {'; '.join(row.own)} |"


HEAD = """# Pairings of the papers' tables

Every row of the papers' tables whose method is here, with the command that starts it. Add `--dry-run` to see prompts,
memory and time, and `--on 4xh200` to ask about another machine; `seed=N` is another seed. The page is made of
`configs/papers.yaml`, and a test composes every row. Nothing here stands for a paper's numbers:
compare rows of one table that were run here ([compare](compare.md)).
"""
