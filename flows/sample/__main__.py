"""``python -m flows.sample WORKSPACE``: pack the run of ``make run`` there as the one that the package brings."""

import sys
from pathlib import Path

from flows.sample import ARCHIVE, RUN
from flows.sample.pack import pack
from lineage.workspace import Workspace

place = Workspace(Path(sys.argv[1]))
pack(place.existing(RUN), place, ARCHIVE)
