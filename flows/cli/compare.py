"""``coevo compare``."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, workspace_at, workspace_option
from coevo.flows.evaluation.comparison import END, Comparison, Difference, compared, recipe_settings
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.evaluation.panel_evaluation import Evaluation

ReferencesArgument = Annotated[
    list[str], typer.Argument(metavar="RUN[@N] RUN[@N] ...", help="Runs, or revisions of runs.")
]
COLUMNS = ("compared", "panel", "revisions", "spent", "success", "difference", "over_tasks", "tasks")
EXPENSES = ("run", "up_to_revision", "part", "episodes", "questions", "tokens", "money", "seconds", "in_equal")


def compare(
    references: ReferencesArgument,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the differences as comma-separated values.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print the differences as a LaTeX table.")] = False,
    evaluate: Annotated[bool, typer.Option(help="Evaluate revisions that were not; the runs do not change.")] = False,
    trust: TrustOption = None,
    directory: WorkspaceOption = None,
) -> None:
    """Compare runs side by side, or the settings of a run with a recipe.

    RUN RECIPE shows the settings of the run that differ from the recipe. RUN RUN shows the settings that differ, the
    held-out success of the revisions, and its difference from the first one, paired by task. RUN is the run at its last
    evaluated revision. RUN@N that was not evaluated is refused, or evaluated with --evaluate. `over tasks`: 95 %
    interval of the difference over tasks; another seed may differ by more.

    Runs are also compared at equal episodes, tokens or seconds of learning, replays included: at their dearest
    evaluations whose costs differ by at most 5 %. Without such, a line names revisions that spent as much, and the
    command that evaluates and compares them. `revisions`, `spent`, `success`: those of the run / of the first run.

    The last table has the cost of each part up to the compared revisions; `in equal`: the budgets that contain it.

    Example: coevo compare homerules-coevo-rl-1@8 homerules-coevo-rl-1@12 --evaluate
    """
    if len(references) < 2:
        raise CoevoError(f"compare {references[0]}: name at least two runs")
    if as_json + as_csv + as_latex > 1:
        raise CoevoError("--json, --csv and --latex cannot be combined: choose one of them")
    workspace = workspace_at(directory)
    if len(references) == 2 and _is_recipe(references[1], workspace):
        _print_recipe(references[0], references[1], workspace, as_json)
        return
    option, played = workspace_option(workspace), list[str]()
    play = partial(_played, workspace, trust, not as_json, played) if evaluate else None
    found = compared(references, workspace, play, option)
    if evaluate and not played:
        typer.echo(f"--evaluate: {', '.join(found.names)} were evaluated before, so nothing was played", err=True)
    if as_json:
        output.document(found.document())
    elif as_csv or as_latex:
        typer.echo(_written(found, as_latex), nl=False)
    else:
        _print(found)
        _print_gaps(found, option)


def _is_recipe(name: str, workspace: Workspace) -> bool:
    """True for a recipe whose name no run has."""
    from coevo.configs.load.shipped_files import shipped

    if name.endswith((".yaml", ".yml")):
        return True
    return name in shipped("recipes") and not workspace.run(name).created.is_file()


def _print_recipe(run: str, recipe: str, workspace: Workspace, as_json: bool) -> None:
    found = recipe_settings(run, recipe, workspace)
    if as_json:
        output.document(found)
    elif found:
        names = sorted({name for values in found.values() for name in values}, key=lambda name: name == recipe)
        output.table(_rows(found, names), ("setting", *names))
    else:
        output.line(f"{run} has the settings of {recipe}.")


def _played(
    workspace: Workspace, trust: str | None, ask: bool, played: list[str], reference: str
) -> "list[Evaluation]":
    """Evaluate a revision, and note that it was played."""
    from coevo.flows.console.progress import shown
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.evaluation.evaluate_revision import evaluate_panels
    from coevo.tasks.publish.reporter import reporting_to

    trust_revision(workspace, reference, trust, ask=ask)
    played.append(reference)
    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        return evaluate_panels(reference, workspace)


def _written(found: Comparison, as_latex: bool) -> str:
    from coevo.flows.evaluation.comparison import differences, latex

    return latex(found) if as_latex else str(differences(found).to_csv(index=False))


def _print(found: Comparison) -> None:
    settings = _rows(found.settings(), found.names)
    output.table(settings, ("setting", *found.names))
    if not settings:
        output.line("No setting differs.")
    _spaced(found.success_rows(), ("panel", *found.names))
    if found.differences:
        output.line()
    for run, differences in groupby(found.differences, key=lambda each: each.run):
        output.line(f"Success of {run} minus the success of {found.names[0]}")
        output.table([_cells(each) for each in differences], COLUMNS)
    expenses = [_expense_cells(row) for row in found.expense_rows()]
    priced = any(row["money"] is not None for row in expenses)
    _spaced(expenses, EXPENSES if priced else [name for name in EXPENSES if name != "money"])


def _spaced(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Print a table below a blank line; nothing without rows."""
    if rows:
        output.line()
        output.table(rows, columns)


def _print_gaps(found: Comparison, option: str) -> None:
    if any(each.low is None for each in found.differences):
        output.line("Some differences are without an interval: the runs do not both store outcomes of the same tasks.")
    if found.apart():
        output.line(
            f"Not compared at equal expense on {', '.join(found.apart())}: the run that spent more was not evaluated "
            "within 5 % of what the other one had spent at any of its evaluations."
        )
        for one, other in found.equal_revisions():
            output.line(f"Revisions that spent as much: coevo compare {one} {other} --evaluate{option}")
    for kind in found.uncounted():
        output.line(f"Not compared at equal {kind}: a run has no count of it.")
    for side in found.sides:
        remedy = f"to see its success: coevo evaluate {side.read}{option}"
        if not side.end:
            output.line(f"{side.read} was not evaluated; {remedy}")
        elif side.name != side.read:
            when = ", before a command changed its bank" if side.is_changed else ", its last evaluation"
            output.line(f"The figures of {side.read} are those of revision {side.end[0].revision}{when}; {remedy}")


def _rows(settings: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, object]]:
    return [
        {"setting": key} | {name: json.dumps(values[name]) if name in values else None for name in names}
        for key, values in settings.items()
    ]


def _cells(each: Difference) -> dict[str, object]:
    at_end = each.equal == END
    return {
        "compared": "at the end" if at_end else f"equal {each.equal}",
        "panel": each.panel,
        "revisions": f"{each.revision} / {each.against_revision}",
        "spent": None if at_end else f"{each.spent:,.0f} / {each.against_spent:,.0f}",
        "success": f"{each.success:.3f} / {each.against_success:.3f}",
        "difference": f"{each.difference:+.3f}",
        "over_tasks": None if each.low is None else f"[{each.low:+.3f}, {each.high:+.3f}]",
        "tasks": each.tasks,
    }


def _expense_cells(row: dict[str, Any]) -> dict[str, object]:
    counts = {name: None if row[name] is None else f"{row[name]:,}" for name in ("episodes", "questions", "tokens")}
    seconds = None if row["seconds"] is None else f"{row['seconds']:,.1f}"
    named = {"run": row["run"], "up_to_revision": row["revision"], "part": row["part"]}
    money = f"{row['money']:,.4f}" if "money" in row else None
    return {**named, **counts, "money": money, "seconds": seconds, "in_equal": ", ".join(row["budgets"])}


COMMANDS = (compare,)
