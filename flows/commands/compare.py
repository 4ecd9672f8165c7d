"""``coevo compare``."""

import json
from typing import Annotated

import typer

from configs.errors import CoevoError
from flows import output
from flows.comparison import END, Comparison, Difference, compared
from flows.settings import JsonOption, WorkspaceOption, workspace_at

References = Annotated[list[str], typer.Argument(metavar="RUN[@N] RUN[@N] ...", help="Runs, or revisions of runs.")]
COLUMNS = ("compared", "panel", "run", "revisions", "spent", "success", "difference", "interval", "tasks")


def compare(
    references: References,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The differences as comma-separated values.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="The differences as a table for a paper.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Set runs side by side.

    Shows the settings that differ, held-out success where each was last evaluated, and its difference from the first
    run: paired by task, with a 95 % interval. At equal episodes, tokens or seconds, each side counts with its last
    evaluation within what the more frugal one had spent on learning, replays included, if it had spent half of that at
    least; revisions and what had been spent at them are shown, the first run's after the stroke.

    Example: coevo compare homerules-coevo-rl-1 homerules-grpo-1@40
    """
    if len(references) < 2:
        raise CoevoError(f"compare {references[0]}: one run is not a comparison, name another one")
    if as_json + as_csv + as_latex > 1:
        raise CoevoError("--json, --csv and --latex are three forms of one answer: choose one of them")
    found = compared(references, workspace_at(workspace))
    if as_json:
        output.document(found.document())
    elif as_csv or as_latex:
        typer.echo(_written(found, as_latex), nl=False)
    else:
        _tell(found)


def _written(found: Comparison, as_latex: bool) -> str:
    from flows.frames import differences, latex

    return latex(found) if as_latex else str(differences(found).to_csv(index=False))


def _tell(found: Comparison) -> None:
    settings = _setting_rows(found)
    output.table(settings, ("setting", *found.names))
    if not settings:
        output.line("No setting differs.")
    output.line()
    output.table(found.success_rows(), ("panel", *found.names))
    output.line()
    if found.differences:
        output.line(f"Success minus that of {found.names[0]}")
    output.table([_cells(each) for each in found.differences], COLUMNS)
    if any(each.low is None for each in found.differences):
        output.line("Some are without an interval: the same tasks' outcomes are not kept on both sides.")
    if found.apart():
        output.line(f"Not at equal expense, since not evaluated near it on both sides: {', '.join(found.apart())}.")
    for kind in found.uncounted():
        output.line(f"Not at equal {kind}: a run was made before they were counted.")


def _setting_rows(found: Comparison) -> list[dict[str, object]]:
    return [
        {"setting": key} | {name: json.dumps(values[name]) if name in values else None for name in found.names}
        for key, values in found.settings().items()
    ]


def _cells(each: Difference) -> dict[str, object]:
    at_end = each.equal == END
    return {
        "compared": "at the end" if at_end else f"equal {each.equal}",
        "panel": each.panel,
        "run": each.run,
        "revisions": f"{each.revision} / {each.against_revision}",
        "spent": None if at_end else f"{each.spent:,.0f} / {each.against_spent:,.0f}",
        "success": f"{each.success:.3f} / {each.against_success:.3f}",
        "difference": f"{each.difference:+.3f}",
        "interval": None if each.low is None else f"[{each.low:+.3f}, {each.high:+.3f}]",
        "tasks": each.tasks,
    }


COMMANDS = (compare,)
