"""A dead server is distinguished from a slow one, and what it keeps waiting ends."""

import re
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.runs import ROOT

from coevo.flows.servers import prefect_watch
from coevo.flows.servers.daemon import ServerError
from coevo.flows.servers.prefect_watch import REFUSED, SILENT, Pulse, ServerAnswer, look, watching


@pytest.mark.parametrize("status", [200, 401, 503])
def test_a_server_that_answers_is_alive_whatever_it_answers(status):
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self):
            assert self.path == "/api/health"
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever).start()
        assert look(f"http://127.0.0.1:{server.server_port}/api") is ServerAnswer.ANSWERED
        server.shutdown()


def test_a_server_that_listens_is_slow_and_one_that_does_not_refuses(monkeypatch):
    monkeypatch.setattr(prefect_watch, "CHECK_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/api"
        assert look(url) is ServerAnswer.SILENT
    assert look(url) is ServerAnswer.REFUSED


@pytest.mark.parametrize(
    ("answers", "seconds"),
    [
        ([ServerAnswer.REFUSED], REFUSED),
        ([ServerAnswer.SILENT], SILENT),
        ([ServerAnswer.SILENT, ServerAnswer.REFUSED], SILENT),  # its queue is full now and then
    ],
)
def test_a_server_is_dead_after_a_while_without_an_answer(answers, seconds):
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    for second in range(int(seconds)):
        now[0] = float(second)
        assert not pulse.is_dead(answers[second % len(answers)])
    assert not pulse.is_dead(ServerAnswer.ANSWERED)
    for second in range(int(seconds)):
        now[0] = seconds + second
        assert not pulse.is_dead(answers[second % len(answers)])
    now[0] = 2 * seconds + 1
    assert pulse.is_dead(answers[-1])


@pytest.fixture
def nobody(monkeypatch):
    """An address at which nothing listens, and which is given up soon."""
    monkeypatch.setattr(prefect_watch, "POLL_INTERVAL_S", 0.05)
    monkeypatch.setattr(prefect_watch, "REFUSED", 0.1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{free.getsockname()[1]}/api")
        yield


def waits():
    try:
        with watching("go on", alone=False):
            try:
                for _ in range(600):
                    time.sleep(0.1)
            except Exception as swallowed:  # as a library may
                raise AssertionError from swallowed
    except ServerError as error:
        return str(error)


def test_what_waits_is_interrupted_in_the_main_thread_and_in_another(nobody):
    line = r"the Prefect server at http://\S+ has gone: go on"
    assert re.fullmatch(line, waits())
    said = []
    thread = threading.Thread(target=lambda: said.append(waits()))
    thread.start()
    thread.join(30)
    assert re.fullmatch(line, said[0])


STUCK = """
import atexit
import sys
import threading
import time
from coevo.flows.servers import prefect_watch
prefect_watch.POLL_INTERVAL_S, prefect_watch.REFUSED, prefect_watch.ENDING, prefect_watch.LEAVING = 0.05, 0.1, 1.0, 0.1

def stuck():
    while True:
        time.sleep(1)

if sys.argv[1] == "thread":
    threading.Thread(target=stuck).start()
if sys.argv[1] == "exit":
    atexit.register(stuck)
try:
    with prefect_watch.watching("go on", alone=True):
        try:
            time.sleep(600)
        finally:
            if sys.argv[1] == "finally":
                stuck()
except prefect_watch.CoevoError as error:
    sys.stderr.write(f"coevo: {error}\\n")
    sys.exit(2)
"""


@pytest.mark.full
def test_a_process_that_does_not_end_is_ended(nobody):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    stuck = [
        subprocess.Popen([sys.executable, "-c", STUCK, where], cwd=ROOT, **streams)
        for where in ("finally", "thread", "exit")
    ]
    for process in stuck:
        said = process.communicate(timeout=400)
        assert process.returncode == 2
        assert re.fullmatch(r"coevo: the Prefect server at http://\S+ has gone: go on\n", said[1])
