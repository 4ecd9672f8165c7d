"""Start, wait and end of a process, tried with Python itself."""

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import psutil
import pytest

from coevo.utilities import processes
from coevo.utilities.processes import Launch, ServerProcess, answers, end_group, free_port, wait, wait_ready

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
time.sleep(600)
"""

POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), sys.exit(5)))
print("ready", flush=True)
time.sleep(600)
"""


def started(code, tmp_path, **options):
    return ServerProcess(Launch([sys.executable, "-c", code], os.environ, tmp_path / "log", **options))


def test_a_process_that_ignores_sigterm_ends_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "STOP_TIMEOUT_S", 0.3)
    process = started(STUBBORN, tmp_path)
    assert wait_ready(lambda: "ready" in (tmp_path / "log").read_text(), process.runs, 60)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.stop()
    assert not process.runs()
    assert not psutil.wait_procs(family, timeout=20)[1]


def test_a_process_has_time_to_end_by_itself(tmp_path):
    process = started(POLITE, tmp_path)
    assert wait_ready(lambda: "ready" in (tmp_path / "log").read_text(), process.runs, 60)
    process.stop()
    assert process.status() == 5


def test_a_group_whose_leader_is_another_by_now_is_left_alone(tmp_path):
    process = started("import time; time.sleep(600)", tmp_path)
    end_group(process.pid, lambda: False)
    assert process.runs()
    process.kill()
    assert process.status() == -signal.SIGKILL


def test_a_leash_ends_a_process_that_reads_it(tmp_path):
    process = started("import sys; sys.stdin.read(); sys.exit(3)", tmp_path, leash=True)
    assert process.runs()
    process.stop()
    assert process.status() == 3


def test_the_wait_ends_with_the_process_or_the_time(tmp_path):
    since = time.monotonic()
    assert not wait_ready(lambda: False, lambda: False, 60)
    assert not wait_ready(lambda: False, lambda: True, 0)
    assert wait_ready(lambda: True, lambda: False, 0)
    wait(lambda: False, 0)
    assert time.monotonic() - since < 30


@pytest.mark.parametrize("waits", [wait, lambda done, seconds: wait_ready(done, lambda: True, seconds)])
def test_the_wait_looks_every_tenth_of_a_second_until_it_is_over(waits, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(processes.time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    looks = iter([False, False, True])
    waits(lambda: next(looks), 60)
    assert (list(looks), now[0]) == ([], pytest.approx(100.2))
    waits(lambda: False, 0.35)
    assert now[0] == pytest.approx(100.6)


@pytest.mark.parametrize(("options", "kept"), [({"append": True}, "before\nafter\n"), ({}, "after\n")])
def test_a_log_is_kept_or_replaced(tmp_path, options, kept):
    (tmp_path / "log").write_text("before\n")
    assert started("print('after')", tmp_path, **options).status() == 0
    assert (tmp_path / "log").read_text() == kept


class Status(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self):
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_):
        pass


def test_only_status_200_is_an_answer():
    with ThreadingHTTPServer(("127.0.0.1", 0), Status) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        found = [status for status in (200, 201, 204, 404, 500) if answers(f"{url}/{status}")]
        server.shutdown()
        thread.join()
    assert found == [200]
    assert not answers(f"{url}/200")


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"])
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://h:1", "http://[::1", "nonsense"])
def test_a_server_of_this_machine_is_asked_past_proxies(name, proxy, monkeypatch):
    monkeypatch.setenv("no_proxy", "a.example")
    monkeypatch.setenv(name, proxy)
    with ThreadingHTTPServer(("127.0.0.1", 0), Status) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        assert answers(f"http://127.0.0.1:{server.server_port}/200")
        server.shutdown()
        thread.join()


def test_a_free_port_is_any_or_the_one_that_a_server_has_just_left():
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        assert port >= 1024
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()  # the side that ends first keeps the port for a minute
            assert client.recv(1) == b""
    assert free_port(port) == port


def test_a_port_that_is_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        free_port(taken.getsockname()[1])


GREETINGS = [
    b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ESMTP\r\n", b"+OK\r\n", b"\x00\x01\x02\xff", b"HTTP/1.1 abc\r\n\r\n", b"",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n" + b"A" * 100_000, b"-ERR unknown command 'GET'\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    *(
        b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\n\r\n"
        for place in (
            b"http://[::1/x", b"http://\xff..\xfe/", b"http://" + b"a" * 70 + b".x/", b"http://127.0.0.1:99999/",
            b"file:///etc/passwd", b"/health", b"http://a\x00b/", b"",
        )
    ),
    b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 999 x\r\n\r\n", b"HTTP/1.1 -20 x\r\n\r\n",
    b"HTTP/1.1 \xb2\xb0\xb0 OK\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x50", b"\0" * 70_000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 200 OK\r\n".encode("utf-16"), b"<html>200</html>",
]  # fmt: skip
ENDLESS = [(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 ", b"2"), (b"HTTP/1.1 200 OK\r\n", b"a"), (b"", b"")]
"""Words of a neighbour: the first, and those that follow without an end."""


@pytest.mark.parametrize(("first", "then"), ENDLESS)
def test_a_neighbour_that_never_comes_to_an_end_is_no_answer(monkeypatch, first, then):
    monkeypatch.setattr(processes, "ANSWER_TIMEOUT_S", 0.5)
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            with listener.accept()[0] as connection, suppress(OSError):
                connection.sendall(first)
                while not over.wait(0.05):
                    connection.sendall(then)

        thread = Thread(target=greet)
        thread.start()
        assert not answers(f"http://127.0.0.1:{listener.getsockname()[1]}/health")
        over.set()
        thread.join()


@pytest.mark.parametrize("said", GREETINGS, ids=range(len(GREETINGS)))
def test_a_neighbour_that_speaks_no_http_is_no_answer(said):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            with listener.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = Thread(target=greet)
        thread.start()
        assert not answers(f"http://127.0.0.1:{listener.getsockname()[1]}/health")
        thread.join()
