"""`coevo status` names the busiest engine, the processes of a run, and what it waits for."""

import json
import os
import shutil

from coevo.flows.history.run_summaries import run_summary
from coevo.flows.run_activity import activity, engine_load, summary_of
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace

LINE = (
    "INFO 11-29 10:00:0{second} [loggers.py:127] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation "
    "throughput: {speed} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {cache}%, "
    "Prefix cache hit rate: 0.0%\n"
)


def write(folder, number, *rows):
    folder.mkdir(parents=True, exist_ok=True)
    said = [LINE.format(second=n, speed=a, running=b, waiting=c, cache=d) for n, (a, b, c, d) in enumerate(rows)]
    (folder / f"server-{number}.log").write_text("INFO: started\n" + "".join(said))


def test_the_busiest_engine_stands_beside_the_mean(tmp_path):
    write(tmp_path, 0, (9.0, 9, 9, 9.0), (100.0, 4, 0, 10.0))
    write(tmp_path, 1, (50.0, 8, 6, 90.0))
    write(tmp_path, 2)
    engines = list(engine_load(tmp_path))
    assert [each["name"] for each in engines] == ["server-0", "server-1"]
    found = summary_of(engines)
    assert found["mean"] == {"tokens_per_s": 75.0, "running": 6.0, "waiting": 3.0, "cache": 50.0}
    assert found["worst"] == {"name": "server-1", "tokens_per_s": 50.0, "running": 8, "waiting": 6, "cache": 90.0}
    assert summary_of([]) is None


def test_a_run_shows_who_works_for_it_and_what_it_waits_for(built, tmp_path):
    shutil.copytree(built, tmp_path / "workspace")
    workspace = Workspace(tmp_path / "workspace")
    paths = workspace.existing("first")
    write(paths.engine, 3, (50.0, 8, 6, 90.0))
    assert activity(run_summary(paths, workspace), workspace)["waits_for"] is None
    with writer_lock(paths):
        found = activity(run_summary(paths, workspace), workspace)
    assert (found["status"], found["waits_for"]) == ("running", "server-3: 6 requests wait")
    driver = found["processes"][0]
    assert (driver["pid"], driver["role"], driver["node"]) == (os.getpid(), "driver", os.uname().nodename)
    assert found["pool"] is None
    assert json.loads(json.dumps(found))["engine_load"]["worst"]["name"] == "server-3"
