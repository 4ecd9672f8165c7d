"""An endpoint with OpenAI's chat completions API on the loopback, which behaves as a test wants."""

import http.server
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Asked:
    """A request: its number, headers by lower-case name, body and path."""

    number: int
    headers: dict[str, str]
    body: dict
    path: str

    @property
    def user(self):
        return self.body["messages"][-1]["content"]


@dataclass
class Answer:
    """An answer; ``sent`` are the parts of its body, each after ``pause`` seconds."""

    sent: object
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0

    def parts(self):
        if isinstance(self.sent, bytes):
            return [self.sent]
        return [json.dumps(self.sent).encode()] if isinstance(self.sent, dict) else self.sent


HANGS, HANGS_UP = object(), object()
"""Behaviours instead of an answer."""


def said(content, finish="stop", used=(7, 3), **message):
    """A completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": used[0], "completion_tokens": used[1], "total_tokens": sum(used)}
    return Answer({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


def refused(message, status=400, **headers):
    """An error as OpenAI writes it."""
    return Answer({"error": {"message": message, "type": "invalid_request_error"}}, status, headers)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __init__(self, behave, listed):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.asked, self.listed = behave, [], listed
        self.over, self.counting = threading.Event(), threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.server.counting:
            request = Asked(len(self.server.asked), headers, body, self.path)
            self.server.asked.append(request)
        answer = self.server.behave(request)
        if answer is HANGS:
            self.server.over.wait(60)
        if answer in (HANGS, HANGS_UP):
            self.close_connection = True
        else:
            self.send(answer)

    def do_GET(self):
        self.send(self.server.listed)

    def send(self, answer):
        parts = answer.parts()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        if isinstance(parts, list):
            self.send_header("Content-Length", str(sum(map(len, parts))))
        else:
            self.close_connection = True
        self.end_headers()
        try:
            for part in parts:
                if self.server.over.wait(answer.pause):
                    return
                self.wfile.write(part)
        except OSError:
            self.close_connection = True  # nobody reads any more

    def log_message(self, *_):
        """Nothing on the console."""


@contextmanager
def completions(behave, listed=Answer(b"")):  # noqa: B008
    """URL of an endpoint, and the list of its requests; ``behave`` gives the answer to each, ``listed`` to a GET."""
    server = Server(behave, listed)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", server.asked
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
