"""``servers.json`` belongs to the path of its workspace; a damaged one is a line and ends no process."""

import json
import os
import stat
import subprocess

import psutil
import pytest

from coevo.flows.cli.app import main
from coevo.flows.servers.daemon import down, ensure, recorded
from coevo.flows.servers.server_process import ServerError

COMMAND = ["http.server", "--bind", "127.0.0.1"]


@pytest.fixture
def directory(tmp_path):
    yield tmp_path / "original"
    down(tmp_path / "original")


@pytest.fixture
def coevo(capsys):
    """Run a command: its exit code, output and error output."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return stopped.value.code, *capsys.readouterr()

    return call


def start(workspace):
    return ensure(workspace, "pages", COMMAND, "/", {})


def test_a_copy_leaves_the_servers_of_its_original_alone_and_starts_its_own(directory, tmp_path, coevo):
    server = start(directory)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", directory, copy], check=True)
    assert coevo("down", "--workspace", copy)[1].startswith("No server of ")
    assert server.runs()
    subprocess.run(["cp", "-a", directory / "servers.json", copy], check=True)
    assert recorded(copy) == []
    try:
        assert start(copy).port != server.port
        assert server.answers()
    finally:
        assert down(copy) == ["pages"]
    assert server.answers()
    assert start(directory).pid == server.pid


def test_servers_of_a_workspace_that_was_moved_are_stopped_and_replaced(directory, tmp_path, coevo):
    there = tmp_path / "there"
    first = start(directory)
    directory.rename(there)
    second = start(there)  # the first has its files open at a path that is gone
    assert second.pid != first.pid and not first.runs()
    there.rename(directory)
    there.mkdir()  # and the path is another workspace's by now
    assert coevo("down", "--workspace", there)[1].startswith("No server of ")
    assert coevo("down", "--workspace", directory)[1].startswith("Stopped")
    assert not second.runs()


def test_a_server_started_before_another_in_a_moved_workspace_stays_recorded_as_moved(directory, tmp_path):
    there = tmp_path / "there"
    first = start(directory)
    directory.rename(there)
    try:
        ensure(there, "files", COMMAND, "/", {})
        assert start(there).pid != first.pid and not first.runs()
    finally:
        assert down(there) == ["files", "pages"]


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(directory, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "example.com")
    assert ensure(directory, "files", COMMAND, "/", {}).answers()
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "example.com,127.0.0.1,localhost"


def test_another_way_to_the_same_workspace_is_the_same(directory, tmp_path):
    server = start(directory)
    (tmp_path / "link").symlink_to(directory)
    assert start(tmp_path / "link").pid == server.pid
    assert down(tmp_path / "link") == ["pages"]


def record(**changed):
    me = psutil.Process()
    whole = {"name": "pages", "pid": me.pid, "started": me.create_time(), "port": 9, "health": "/"}
    return json.dumps([whole | changed])


DAMAGED = {
    "empty": "",
    "no JSON": "servers",
    "truncated": record()[:-20],
    "another type": '{"pages": 1}',
    "a number as text": record(pid="1"),
    "truth as a number": record(pid=True),
    "everybody's process group": record(pid=0),
    "a negative process": record(pid=-1),
    "no time": record(started=None),
    "no port": record(port=10**6),
    "another host": record(health="@example.org/"),
    "an extra key": record(command="rm"),
    "a missing key": '[{"name": "pages"}]',
    "twice the same": json.dumps([*json.loads(record()), *json.loads(record())]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_one_is_a_line_and_ends_nothing(tmp_path, coevo, damage):
    path = tmp_path / "servers.json"
    path.write_text(DAMAGED[damage])
    code, _, said = coevo("down", "--workspace", tmp_path)
    assert (code, said.count("\n")) == (2, 1)
    assert f"{path}: damaged (" in said
    assert "then remove this file" in said
    with pytest.raises(ServerError, match="damaged"):
        start(tmp_path)
    assert path.read_text() == DAMAGED[damage]


def test_the_doctor_names_a_damaged_one(tmp_path, coevo):
    (tmp_path / "servers.json").touch()
    code, said, _ = coevo("doctor", "--json", "--workspace", tmp_path)
    (row,) = (row for row in json.loads(said) if row["check"] == "servers")
    assert (code, row["status"], "remove this file" in row["remedy"]) == (1, "problem", True)


def test_a_new_workspace_is_private_and_one_that_is_there_keeps_its_mode(directory, tmp_path):
    start(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o755)
    start(there)
    down(there)
    assert stat.S_IMODE(there.stat().st_mode) == 0o755


def test_secrets_of_clients_do_not_travel_to_servers(directory, monkeypatch):
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "user:swordfish")
    environment = psutil.Process(start(directory).pid).environ()
    assert "swordfish" not in str(environment)
    assert os.environ["PREFECT_API_AUTH_STRING"] == "user:swordfish"
