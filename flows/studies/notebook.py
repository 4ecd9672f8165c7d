"""Studies for notebooks: ``coevo.ablate``."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from coevo.flows.console.options import as_typed, workspace_of
from coevo.utilities.extras import extras_named

if TYPE_CHECKING:
    import pandas as pd


@extras_named()
def ablate(
    study: str,
    overrides: Mapping[str, object] | None = None,
    *,
    seeds: int | None = None,
    name: str | None = None,
    quiet: bool = False,
    workspace: Path | str | None = None,
) -> "pd.DataFrame":
    """Play the runs of a study that are not finished, like ``coevo ablate``, and compare its arms.

    It stops early where a run is pending approval (see ``waiting``); finished runs are compared all the same.

    Args:
        study: name of a shipped study, or path of a ``.yaml`` file.
        overrides: settings of every arm by dotted key.
        seeds: number of seeds; the study's by default.
        name: name that its runs begin with; the study's by default.
        quiet: show no progress.
        workspace: directory of runs.

    Returns:
        Frame with one row per metric and arm, and the columns of ``coevo.flows.studies.result.ArmRow``.

    Raises:
        CoevoError: the study cannot run here, an arm is not possible, or a run cannot continue.
    """
    import pandas as pd

    from coevo.configs.load.load_study import changed, load_study
    from coevo.flows.studies.result import COLUMNS
    from coevo.flows.studies.start_study import result_of, start

    opened, described = workspace_of(workspace), changed(load_study(study), name, seeds, as_typed(overrides))
    start(described, opened, quiet, alone=False)
    return pd.DataFrame([asdict(row) for row in result_of(described, opened).rows], columns=COLUMNS)
