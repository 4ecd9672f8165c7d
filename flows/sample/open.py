"""The sample, ready to be looked at."""

import os
from pathlib import Path

from flows import output
from flows.sample import RUN
from flows.sample.unpack import unpack
from flows.servers import prefect_in_use, use_prefect
from lineage.cursor import Cursor
from lineage.workspace import Workspace

NAMED = ("PREFECT_API_URL", "MLFLOW_TRACKING_URI")
"""Servers of somebody's real runs, which the sample keeps out of."""


def open_sample(workspace: Path) -> Workspace:
    """The sample's workspace, with servers of its own that know all of it.

    Raises:
        CoevoError: a server did not start, or does not take it.
    """
    for name in NAMED:
        os.environ.pop(name, None)
    place = unpack(workspace)
    use_prefect(place.root)
    if Cursor(place.existing(RUN).published).read() < 0:
        from flows.sample.show import show

        output.line("Publishing the sample to its pages, once ...")
        with prefect_in_use():
            show.with_options(flow_run_name=RUN)(RUN, str(place.root))
    return place
