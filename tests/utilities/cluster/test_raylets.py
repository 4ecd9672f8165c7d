"""Starts of nodes, with a small program in Ray's place: the second attempt, the environment, and the end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from coevo.utilities.cluster import raylets
from coevo.utilities.cluster.joined_cluster import ClusterError, JoinedCluster, joined
from coevo.utilities.cluster.raylets import ClusterFiles, remove_session, start_head, start_node
from coevo.utilities.cluster.setting_names import OF_RUN, SettingNames
from coevo.utilities.local_http import free_port
from coevo.utilities.processes import ONE_CORE

STARTS = """
import json, os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(json.dumps([sys.argv[1:], dict(os.environ)]), flush=True)
print("Ray runtime started.", flush=True)
time.sleep(600)
"""
FAILS = """
print("ValueError: no room for sockets")
print("see the documentation")
raise SystemExit(3)
"""
FAILS_ONCE = f"""
import os, sys
mark = os.path.join(os.environ["RAY_AUTH_TOKEN_PATH"] + "-seen")
if not os.path.exists(mark):
    open(mark, "w").close()
    raise SystemExit(1)
{STARTS}
"""


@pytest.fixture
def files(tmp_path):
    return ClusterFiles(tmp_path / "secret", tmp_path / "session", tmp_path)


@pytest.fixture
def program(monkeypatch, files):
    """Puts a program in Ray's place, and ends what it started."""
    started = []

    def start(text, node=0):
        monkeypatch.setattr(raylets, "START", text)
        started.append(start_node(files, node, 1, 2, 60.0) if node else start_head(files, 2, 60.0))
        return started[-1]

    yield start
    for each in started:
        each.process.stop()
    remove_session(files)


def test_nodes_get_no_secret_and_all_that_keeps_them_on_loopback(program, files, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    head, node = program(STARTS), program(STARTS, node=2)
    for name, asked in (("head", f"--port={head.port}"), ("node-2", "--address=127.0.0.1:1")):
        arguments, environment = json.loads((files.logs / f"{name}.log").read_text().splitlines()[0])
        assert asked in arguments
        assert "--node-ip-address=127.0.0.1" in arguments
        ports = [each.partition("=")[2] for each in arguments if each.startswith(raylets.AGENT_PORTS)]
        assert len(set(ports)) == len(raylets.AGENT_PORTS)
        assert "OPENAI_API_KEY" not in environment
        assert environment["NCCL_SOCKET_IFNAME"] == "eth0"
        assert environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
        assert (environment["RAY_AUTH_MODE"], environment["RAY_AUTH_TOKEN_PATH"]) == ("token", str(files.token))
        assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
    assert node.port == 1
    arguments, _ = json.loads((files.logs / "head.log").read_text().splitlines()[0])
    (temporary,) = (each.partition("=")[2] for each in arguments if each.startswith("--temp-dir="))
    assert Path(temporary).parent == files.session.resolve()
    assert files.session.resolve().stat().st_mode & 0o777 == 0o700  # Ray opens its own folder to everybody
    assert "--no-monitor" in arguments  # whose figures need no token


def test_a_node_ends_with_all_its_processes_and_nothing_else_ends_it(program, files):
    process = program(STARTS).process
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3  # a second guard, the program, and what it started
    process.stop()
    assert not psutil.wait_procs(family, timeout=60)[1]
    folder = files.session.resolve()
    remove_session(files)
    assert not folder.exists()
    assert not files.session.is_symlink()


def test_a_start_that_fails_is_tried_once_more(program):
    assert program(FAILS_ONCE).process.runs()


def test_two_failures_are_one_line(program, files):
    with pytest.raises(ClusterError, match="started twice, ended before it was ready: ValueError: no room") as e:
        program(FAILS)
    assert "\n" not in str(e.value)
    assert str(files.logs / "head.log") in str(e.value)


def test_a_link_to_another_folder_is_not_followed(files, tmp_path):
    (tmp_path / "mine").mkdir()
    files.session.symlink_to(tmp_path / "mine")
    remove_session(files)
    assert (tmp_path / "mine").is_dir()


def test_an_address_without_a_cluster_is_one_line_and_imports_nothing(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ClusterError, match=r"placement\.address=auto finds no cluster: `coevo cluster up`"):
        joined("auto", 5.0)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at 127\.0\.0\.1:\d+ .* placement\.address$"):
        joined("auto", 5.0)


def test_messages_name_the_settings_of_a_command(monkeypatch):
    names, address = SettingNames("--cluster", ""), f"127.0.0.1:{free_port()}"
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ClusterError, match=r"^--cluster=auto finds no cluster"):
        joined("auto", 5.0, names)
    with pytest.raises(ClusterError, match=r"or correct --cluster$"):
        joined(address, 5.0, names)
    for named, said in ((names, "had it in 5 s:"), (OF_RUN, "had it in placement.startup_timeout=5 s:")):
        cluster = JoinedCluster(address, named)
        monkeypatch.setattr(cluster, "nodes", list)
        assert said in str(cluster.lacking(ONE_CORE, "pool", 5.0))


def test_modules_of_the_cluster_import_nothing_of_ray():
    modules = "coevo.utilities.cluster.joined_cluster, coevo.utilities.cluster.raylets"
    modules += ", coevo.envs.stateful.cluster_workers, coevo.utilities.cluster.node_places"
    code = f"import sys, {modules}; print('ray' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", code]
    said = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=300).stdout
    assert said.split() == ["False"]
