"""Standings of runs, read by a process of its own."""

import subprocess
import sys
from pathlib import Path

from support.small_run import build

OPTIMIZED = """
import sys
from pathlib import Path
from coevo.flows.history.run_summaries import run_summaries
from coevo.lineage.workspace import Workspace
(found,) = run_summaries(Workspace(Path(sys.argv[1])))
print(found.status)
"""


def test_a_run_without_a_time_of_creation_is_faulty_where_python_leaves_out_assertions_too(tmp_path):
    build(tmp_path).created.write_text("yesterday\n")
    command = [sys.executable, "-O", "-c", OPTIMIZED, tmp_path]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("faulty, ")
    assert "'yesterday' is not a time in ns" in done.stdout
