"""A server's process: any program that serves a port will do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from coevo.models.engines.vllm.server_client import Client
from coevo.models.engines.vllm.vllm_server import VllmServer, VllmServerError

SERVE = """
import sys, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVE
PARENT = """
import sys
from pathlib import Path
from coevo.models.engines.vllm.vllm_server import VllmServer
server = VllmServer([sys.executable, "-c", sys.argv[1]], {}, Path(sys.argv[2]))
print(server.pid, flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).parents[4]


def served(code, tmp_path):
    return VllmServer([sys.executable, "-c", code], {}, tmp_path / "log")


def ready(server):
    client = Client(server.url, timeout=5)
    server.wait(60, client.is_ready)
    return client


def gone(processes):
    return not psutil.wait_procs(processes, timeout=20)[1]


def test_it_serves_without_prefects_secret_and_ends_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "user:swordfish")
    server = served(SERVE, tmp_path)
    client = ready(server)
    assert "swordfish" not in str(psutil.Process(server.pid).environ())
    family = psutil.Process(server.pid).children(recursive=True)
    assert family
    server.stop()
    assert gone(family)
    assert not client.is_ready()
    assert not server.runs()


def test_one_that_will_not_end_is_ended(tmp_path):
    server = served(STUBBORN, tmp_path)
    ready(server)
    (child,) = psutil.Process(server.pid).children()
    child.suspend()
    server.stop()
    assert gone([child])


def test_it_ends_with_its_guard(tmp_path):
    server = served(SERVE, tmp_path)
    ready(server)
    family = psutil.Process(server.pid).children(recursive=True)
    os.kill(server.pid, signal.SIGTERM)
    assert gone(family)
    server.stop()


def test_it_ends_with_its_parent_even_by_kill_9(tmp_path):
    command = [sys.executable, "-c", PARENT, SERVE, str(tmp_path / "log")]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    guard = psutil.Process(int(parent.stdout.readline()))
    give_up = time.monotonic() + 30
    while not guard.children() and time.monotonic() < give_up:
        time.sleep(0.05)
    family = [guard, *guard.children(recursive=True)]
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    assert gone(family)


DYING = {
    "an exception": ("raise ValueError('no such device')", "ValueError: no such device"),
    "a refused option": (
        "import argparse; argparse.ArgumentParser('api').parse_args(['--no'])",
        "api: error: unrecognized arguments: --no",
    ),
    "an engine in a process of its own": (
        "print('(EngineCore pid=7) ERROR 11-26 10:00:00 [core.py:1510] ValueError: too little memory is free'); "
        "print('(APIServer pid=5) RuntimeError: Engine core initialization failed. See root cause above.')",
        "ValueError: too little memory is free",
    ),
}


@pytest.mark.parametrize(("program", "reason"), DYING.values(), ids=DYING)
def test_one_that_dies_at_once_says_why(tmp_path, program, reason):
    server = served(program, tmp_path)
    with pytest.raises(VllmServerError, match=f"ended before it was ready: {reason}; see .*log"):
        server.wait(60, Client(server.url, timeout=5).is_ready)
    server.stop()
    assert "Fatal Python error" not in (tmp_path / "log").read_text()


def test_one_that_never_becomes_ready_is_stopped(tmp_path):
    server = served("import time; time.sleep(600)", tmp_path)
    with pytest.raises(VllmServerError, match=r"startup_timeout=0\.2"):
        server.wait(0.2, Client(server.url, timeout=5).is_ready)
    assert not server.runs()
