"""Comparisons as pandas frames, for notebooks and papers."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from coevo.flows.history.comparison import END, Comparison, Difference
from coevo.flows.history.evaluations import Side

if TYPE_CHECKING:
    from pandas import DataFrame

CURVES = ("run", "revision", "panel", "success", "reward", "episodes", "tokens", "seconds")
LATEX = ("equal", "panel", "run", "revisions", "success", "difference", "95 % over tasks", "tasks")


def curves(sides: Sequence[Side]) -> "DataFrame":
    """Held-out success of the runs by cost: one row per evaluation on a panel.

    Returns:
        A frame with ``run``, ``revision``, ``panel``, ``success``, ``reward``, ``episodes``, ``tokens``, ``seconds``.
    """
    from pandas import DataFrame

    rows = [
        (side.name, each.revision, each.panel, each.success, each.reward, *asdict(each.spent).values())
        for side in sides
        for each in side.evaluations
    ]
    return DataFrame(rows, columns=list(CURVES))


def differences(found: Comparison) -> "DataFrame":
    """Differences of a comparison, one per row, with the columns of ``coevo.flows.history.comparison.Difference``."""
    from pandas import DataFrame

    names = [field.name for field in fields(Difference)]
    return DataFrame([asdict(each) for each in found.differences], columns=names)


def latex(found: Comparison) -> str:
    """Differences as a LaTeX table with the commands of ``booktabs``."""
    from pandas import DataFrame

    rows = [_cells(each) for each in found.differences]
    shown = DataFrame(rows, columns=list(LATEX)).style.format(escape="latex").format_index(axis=1, escape="latex")
    title = f"% minus {found.names[0]}, whose revisions and success are behind the stroke; 95 % over tasks, paired"
    return f"{title}\n{shown.hide(axis='index').to_latex(hrules=True, column_format='llllrrrr')}"


def _cells(each: Difference) -> tuple[str, ...]:
    where = "at the end" if each.equal == END else f"equal {each.equal}"
    interval = "" if each.low is None else f"[{each.low:+.3f}, {each.high:+.3f}]"
    revisions, gain = f"{each.revision} / {each.against_revision}", f"{each.difference:+.3f}"
    success, tasks = f"{each.success:.3f} / {each.against_success:.3f}", "" if each.tasks is None else str(each.tasks)
    return where, each.panel, each.run, revisions, success, gain, interval, tasks
