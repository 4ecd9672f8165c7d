"""Servers of this machine: which answer counts, and which port is free."""

import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from coevo.utilities import local_http
from coevo.utilities.local_http import answers, free_port


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
    monkeypatch.setattr(local_http, "ANSWER_TIMEOUT_S", 0.5)
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
