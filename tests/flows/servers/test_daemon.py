"""Life and death of a server, tried with one that starts in no time."""

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from coevo.flows.servers.daemon import Server, ServerError, down, ensure

COMMAND = ["http.server", "--bind", "127.0.0.1"]


@pytest.fixture
def workspace(tmp_path):
    yield tmp_path / "my wörkspace"
    down(tmp_path / "my wörkspace")


def start(workspace):
    return ensure(workspace, "pages", COMMAND, "/", {})


def kill(server):
    """End a server and wait until it has ended."""
    process = psutil.Process(server.pid)
    os.killpg(server.pid, signal.SIGKILL)
    process.wait(60)


def record(workspace):
    return json.loads((workspace / "servers.json").read_text())


START = """
import sys
from pathlib import Path
from coevo.flows.servers.daemon import ensure
print(ensure(Path(sys.argv[1]), "pages", ["http.server", "--bind", "127.0.0.1"], "/", {}).url)
"""


def test_commands_side_by_side_share_a_server_that_outlives_them(workspace):
    commands = [
        subprocess.Popen([sys.executable, "-c", START, workspace], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    urls = {command.communicate(timeout=60)[0].strip() for command in commands}
    assert urls == {start(workspace).url}
    assert len(record(workspace)) == 1


def test_servers_of_two_names_start_side_by_side(workspace):
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(ensure, workspace, "slow", COMMAND, "/is-not-there", {})
        assert start(workspace).answers()
        assert not slow.done()
        pids = {server["name"]: server["pid"] for server in record(workspace)}
        assert sorted(pids) == ["pages", "slow"]
        os.killpg(pids["slow"], signal.SIGKILL)
        with pytest.raises(ServerError, match="the slow server did not start"):
            slow.result()


def test_down_stops_what_runs_and_names_it(workspace):
    server = start(workspace)
    assert server.answers()
    assert down(workspace) == ["pages"]
    assert not server.runs()
    assert not server.answers()
    assert down(workspace) == []


def test_down_in_a_workspace_that_never_was(tmp_path):
    assert down(tmp_path / "nothing") == []
    assert not (tmp_path / "nothing").exists()


def test_a_port_that_another_has_taken_is_left_to_it(workspace):
    first = start(workspace)
    kill(first)
    with socket.create_server(("127.0.0.1", first.port)):
        assert start(workspace).port != first.port


def test_a_dead_server_is_replaced_where_it_was(workspace):
    first = start(workspace)
    kill(first)
    second = start(workspace)
    assert second.pid != first.pid
    assert second.url == first.url
    assert second.answers()
    assert [one["pid"] for one in record(workspace)] == [second.pid]


def test_a_server_that_hangs_is_replaced(workspace):
    first = start(workspace)
    (workspace / "servers.json").write_text(json.dumps([record(workspace)[0] | {"health": "/not-there"}]))
    second = start(workspace)
    assert not first.runs()
    assert second.answers()


def test_a_clock_that_was_set_back_loses_no_server(workspace):
    first = start(workspace)
    (workspace / "servers.json").write_text(json.dumps([record(workspace)[0] | {"started": first.started + 3600}]))
    assert start(workspace).pid == first.pid
    assert down(workspace) == ["pages"]


def test_a_server_that_cannot_be_recorded_does_not_stay(workspace):
    (workspace / "servers.json.part").mkdir(parents=True)
    before = psutil.Process().children()
    with pytest.raises(IsADirectoryError):
        start(workspace)
    (workspace / "servers.json.part").rmdir()
    started = set(psutil.Process().children()) - set(before)
    assert not [process for process in started if process.status() != psutil.STATUS_ZOMBIE]


def test_a_process_that_has_the_old_id_is_left_alone(workspace):
    me = os.getpid()
    stranger = Server("pages", me, psutil.Process(me).create_time() - 1.0, 1, "/")
    assert not stranger.runs()
    stranger.stop()
    start(workspace)
    (workspace / "servers.json").write_text(
        json.dumps([record(workspace)[0], record(workspace)[0] | {"name": "old", "pid": me, "started": 1.0}])
    )
    assert down(workspace) == ["pages"]


def test_a_server_that_does_not_start_names_its_log(workspace, monkeypatch):
    with pytest.raises(
        ServerError, match=r"^the pages server did not start on port \d+: it .*; see .*pages\.log, then try"
    ):
        ensure(workspace, "pages", ["no_such_module"], "/", {})
    assert "no_such_module" in (workspace / "pages.log").read_text()
    monkeypatch.setattr("coevo.flows.servers.daemon.STARTUP", 0.5)
    with pytest.raises(ServerError, match="the pages server did not start"):
        ensure(workspace, "pages", COMMAND, "/is-not-there", {})
    assert down(workspace) == []


def test_telemetry_is_off_and_settings_arrive(workspace):
    server = ensure(workspace, "pages", COMMAND, "/", {"COLOUR": "blue", "SELF": "at {port}"})
    environment = psutil.Process(server.pid).environ()
    assert (environment["COLOUR"], environment["SELF"]) == ("blue", f"at {server.port}")
    assert environment["DO_NOT_TRACK"] == "1"
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
