"""Half-made folders in ``runs/``: only those that no living process holds."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from coevo.lineage.fsck.places import check_strangers, half_made, tidy
from coevo.lineage.workspace import Workspace

PULLING = """
import sys
from pathlib import Path
from coevo.lineage.remote.transfer_scratch import scratch_directory
with scratch_directory(Path(sys.argv[1]) / "runs" / ".first.pull", "run 'first' is being pulled") as scratch:
    (scratch / "theirs").mkdir()
    print(scratch, flush=True)
    sys.stdin.read()
"""
MAKING = """
import sys
from pathlib import Path
from coevo.configs.load.load import load_recipe
from coevo.lineage.workspace import Workspace
with Workspace(Path(sys.argv[1])).staged("first", load_recipe("homerules-coevo-rl", [])) as run:
    print(run.root, flush=True)
    sys.stdin.read()
"""


@contextmanager
def process(script, directory):
    """A process that makes a run, and the directory where it does; its end is a kill."""
    doing = subprocess.Popen(
        [sys.executable, "-c", script, directory],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Path(doing.stdout.readline().strip())
    finally:
        doing.kill()
        doing.communicate()


@pytest.mark.parametrize("script", [PULLING, MAKING], ids=["pulled", "made"])
def test_only_what_no_living_process_holds_is_half_made(directory, script):
    workspace = Workspace(directory)
    with process(script, directory) as path:
        assert path.is_dir()
        assert list(check_strangers(workspace)) == []
        tidy(workspace)
        assert path.is_dir()
    assert [finding.subject for finding in check_strangers(workspace)] == [f"runs/{path.name}"]
    tidy(workspace)
    assert half_made(workspace) == []
    assert not path.exists()
