"""Names of MLflow runs: coevo's run name, with a number behind it where another MLflow run of the experiment has it.

A run of the same name may come from another workspace, or from one that was deleted here. The number stands in
parentheses, which no run name has, so it never equals the name of a run.
"""

import re
from collections.abc import Collection
from itertools import count
from typing import Any

PAGE = 1000


def other_names(mlflow: Any, experiment: str, run: str, own: str | None = None) -> set[str]:
    """Names of MLflow runs of an experiment that begin with a run's name; ``own`` is the MLflow run to leave out."""
    # A name's '_' matches any character in LIKE, so a few other names may be found, which does no harm.
    found = mlflow.search_runs([experiment], f"attributes.run_name LIKE '{run}%'", max_results=PAGE)
    return {each.info.run_name for each in found if each.info.run_id != own}


def free_name(run: str, taken: Collection[str]) -> str:
    """``run``, or the first of ``run (2)``, ``run (3)``, … that is not taken."""
    if run not in taken:
        return run
    return next(name for number in count(2) if (name := f"{run} ({number})") not in taken)


def is_right(shown: str, run: str, taken: Collection[str]) -> bool:
    """Return True if an MLflow run's name stands for the run and no other MLflow run has it."""
    return shown not in taken and re.fullmatch(rf"{re.escape(run)}( \(\d+\))?", shown) is not None
