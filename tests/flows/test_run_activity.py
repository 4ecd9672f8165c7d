"""`coevo status` names the processes of a run, its engines, and what it waits for."""

import json
import os
import shutil

import pytest

from coevo.flows.cli.app import main
from coevo.flows.history.run_summaries import run_summary
from coevo.flows.run_activity import activity
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace

LINE = (
    "INFO 11-29 10:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation "
    "throughput: 50.0 tokens/s, Running: 8 reqs, Waiting: 6 reqs, GPU KV cache usage: 90.0%, Prefix cache hit rate: "
    "0.0%\n"
)


def test_a_run_shows_who_works_for_it_and_what_it_waits_for(built, tmp_path, capsys):
    shutil.copytree(built, tmp_path / "workspace")
    workspace = Workspace(tmp_path / "workspace")
    paths = workspace.existing("first")
    paths.engine.mkdir(exist_ok=True)
    (paths.engine / "server-3.log").write_text(LINE)
    assert activity(run_summary(paths, workspace), workspace)["waits_for"] is None
    with writer_lock(paths):
        found = activity(run_summary(paths, workspace), workspace)
    assert (found["status"], found["waits_for"]) == ("running", "server-3: 6 requests wait")
    driver = found["processes"][0]
    assert (driver["pid"], driver["role"], driver["node"]) == (os.getpid(), "driver", os.uname().nodename)
    assert found["pool"] is None
    assert json.loads(json.dumps(found))["engine_load"]["worst"]["name"] == "server-3"
    with pytest.raises(SystemExit, match="0"):
        main(["status", "first", "--workspace", str(workspace.root)])
    assert "server-3: 8 running, 6 waiting, 50 tokens/s, cache 90 %" in capsys.readouterr().out.splitlines()
