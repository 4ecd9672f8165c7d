"""Rows of the list of runs: each with its standing and the success of its evaluations."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from coevo.flows.history import history
from coevo.flows.history.run_standing import Standing, standings
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import wall_seconds

COLUMNS = (
    "run", "recipe", "parent", "revision", "iteration", "start_success", "final_success", "evaluated", "seconds",
    "status", "stage", "reason", "process", "fault",
)  # fmt: skip


def run_rows(place: Workspace) -> list[dict[str, Any]]:
    """Rows of ``COLUMNS`` for the runs of a workspace, newest last."""
    return [run_row(one) for one in standings(place)]


def run_row(one: Standing) -> dict[str, Any]:
    """Row of ``COLUMNS`` for one run."""
    recipe = None if one.config is None else one.config.recipe
    figures = _figures(one.revisions) if one.revisions else {}
    about = {"run": one.paths.name, "recipe": recipe, "parent": one.parent, "process": one.process, "fault": one.fault}
    return dict.fromkeys(COLUMNS) | figures | about | asdict(one.status)


def _figures(revisions: Sequence[Manifest]) -> dict[str, object]:
    head, last = revisions[-1], history.evaluated(revisions)
    return {
        "revision": head.revision,
        "iteration": head.iteration,
        "start_success": history.held_out(revisions[0]),
        "final_success": None if last is None else history.held_out(last),
        "evaluated": None if last is None else last.revision,
        "seconds": round(sum(map(wall_seconds, revisions)), 3),
    }
