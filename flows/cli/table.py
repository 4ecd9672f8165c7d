"""``coevo table``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, workspace_at
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.evaluation.method_table import MethodTable

NO_MEMORY, FROZEN = "minus no memory", "minus frozen with bank"
WIDTH = 80
"""Width of a table in characters; kinds of tasks that do not fit go into further tables."""


def table(
    what: Annotated[
        list[str], typer.Argument(metavar="RUN[@N]|FILE.jsonl ...", help="Runs, or files of `coevo evaluate --output`.")
    ],
    panel: Annotated[str | None, typer.Option(help="Held-out panel; by default the runs' first.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print one table in Markdown.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Show methods in a table as papers have them: success, score and length, over seeds and by kind of task.

    Runs that differ in their seed, or in that of their world, are one row: mean and 95 % interval over the seeds, by
    Student's t. A table has a row that trains without memory (GRPO) and one of a frozen policy with a bank beside the
    methods; without them it is refused, with the commands that run them. Success and score are in percent: score is the
    mean return times 100. Files with several samples have avg@K and pass@K.

    Example: coevo table webshop_slea-rl_qwen2.5-7b-1 webshop_grpo_qwen2.5-7b-1 webshop_experience-only_qwen2.5-7b-1
    """
    if as_markdown and as_json:
        raise CoevoError("--markdown and --json cannot be combined: choose one of them")
    from coevo.flows.evaluation.method_table import method_table
    from coevo.flows.evaluation.scored_panels import scored_panels

    workspace = workspace_at(directory)
    found = method_table([each for text in what for each in scored_panels(text, panel, workspace)])
    if as_json:
        output.document(found.document())
    elif as_markdown:
        typer.echo("\n".join(_markdown(found)))
    else:
        _print(found)


def _print(found: "MethodTable") -> None:
    output.line(f"{found.environment} {found.panel}, {found.tasks} tasks, mean ± half of the 95 % interval over seeds")
    heads = _heads(found)
    _print_rows([_row(row.method, len(row.seeds), row.cells(), heads) for row in found.rows])
    names = {f"kind/{kind}": kind for kind in found.kinds}
    rows = [_row(row.method, None, row.cells(), names) for row in found.rows]
    for columns in _fitting(rows, list(names.values())):
        output.line()
        _print_rows([{name: row[name] for name in ("method", *columns)} for row in rows])
    if differences := _differences(found):
        output.line()
        output.line("success minus that of the rows beside it, paired by seed")
        _print_rows(differences)
    for note in found.notes:
        output.line(note)


def _differences(found: "MethodTable") -> list[dict[str, str]]:
    """A row for each method with its difference from the first row of each role."""
    rows: dict[str, dict[str, str]] = {}
    for each in found.differences():
        row = rows.setdefault(each["method"], {"method": each["method"], NO_MEMORY: "-", FROZEN: "-"})
        name = NO_MEMORY if each["role"] == "no memory" else FROZEN
        row[name] = row[name] if row[name] != "-" else _cell(each, sign="+")
    return list(rows.values())


def _heads(found: "MethodTable") -> dict[str, str]:
    """Columns besides the kinds, and their heads."""
    count = found.samples
    heads = {"success": f"avg@{count}" if count > 1 else "success", "pass": f"pass@{count}"}
    return {name: heads.get(name, name) for name in found.columns}


def _row(
    method: str, seeds: int | None, cells: Mapping[str, Mapping[str, float | None]], heads: Mapping[str, str]
) -> dict[str, Any]:
    counted = {} if seeds is None else {"seeds": str(seeds)}
    return {"method": method, **counted, **{head: _cell(cells.get(name)) for name, head in heads.items()}}


def _cell(cell: Mapping[str, Any] | None, sign: str = "") -> str:
    if cell is None:
        return "-"
    half = "" if cell["low"] is None else f"±{(cell['high'] - cell['low']) / 2:.1f}"
    return f"{cell['mean']:{sign}.1f}{half}"


def _fitting(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> Iterator[list[str]]:
    """Columns in groups that fit beside the methods."""
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) + 2 for name in columns}
    left, room = list(columns), WIDTH - max(len("method"), *(len(row["method"]) for row in rows))
    while left:
        group = [left.pop(0)]
        while left and sum(widths[name] for name in (*group, left[0])) <= room:
            group.append(left.pop(0))
        yield group


def _print_rows(rows: Sequence[Mapping[str, str]]) -> None:
    output.table(rows, tuple(rows[0]))


def _markdown(found: "MethodTable") -> Iterator[str]:
    heads = _heads(found) | {f"kind/{kind}": kind for kind in found.kinds}
    yield "| " + " | ".join(("method", "seeds", *map(_escaped, heads.values()))) + " |"
    yield "|---|" + "---:|" * (len(heads) + 1)
    for row in found.rows:
        cells = _row(row.method, len(row.seeds), row.cells(), heads)
        yield "| " + " | ".join(map(_escaped, cells.values())) + " |"
    yield f"\n{found.environment} {_escaped(found.panel)}, {found.tasks} tasks; ±: 95 % over seeds, Student's t."


def _escaped(text: str) -> str:
    return output.plain(text).plain.replace("|", "\\|").replace("<", "&lt;")


COMMANDS = (table,)
