"""Temporary directories stand in the workspace, link artifacts, and outlive no process for long."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import small_run

from coevo.flows.history.revision_reference import reading
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace

HOLDER = """
import sys
from pathlib import Path
from coevo.lineage.scratch import scratch_directory
with scratch_directory(Path(sys.argv[1])) as made:
    (made / "weights").write_text("half")
    print(made, flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(workspace):
    """Directory that another process holds, which is killed at the end."""
    line = [sys.executable, "-c", HOLDER, workspace]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Path(process.stdout.readline().strip())
        process.kill()


def test_artifacts_are_linked_and_nothing_is_left(tmp_path):
    small_run.build(tmp_path)
    with reading("first@3", Workspace(tmp_path)) as run, scratch_directory(tmp_path) as made:
        policy = run.lineage.artifacts.materialise(3, "policy", made / "policy")
        assert policy.is_relative_to(tmp_path)
        assert all(path.stat().st_nlink > 1 for path in policy.iterdir())
    assert not (tmp_path / "scratch").exists()


def test_what_a_killed_process_left_is_removed_and_what_another_uses_is_not(tmp_path):
    with held(tmp_path) as made, scratch_directory(tmp_path) as own:
        assert (made / "weights").is_file()
        assert own != made
    assert made.is_dir()
    with scratch_directory(tmp_path) as own:
        assert {path.stem for path in own.parent.iterdir()} == {own.name}


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="stop"), scratch_directory(tmp_path) as made:
        (made / "weights").write_text("half")
        raise ValueError("stop")
    assert not (tmp_path / "scratch").exists()


def test_a_workspace_that_this_user_may_only_read_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with scratch_directory(tmp_path) as made:
        assert not made.is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not made.exists()
