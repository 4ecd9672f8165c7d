"""``python -m coevo.flows.sample WORKSPACE``: pack the run of ``make run`` there as the sample of the package."""

import sys
from pathlib import Path

from coevo.flows.sample import ARCHIVE, RUN
from coevo.flows.sample.pack import pack
from coevo.lineage.workspace import Workspace

workspace = Workspace(Path(sys.argv[1]))
pack(workspace.existing(RUN), workspace, ARCHIVE)
