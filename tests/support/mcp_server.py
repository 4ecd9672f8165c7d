"""A server of the Model Context Protocol for tests, with the standard library alone: over standard streams, or HTTP.

``python mcp_server.py`` speaks over its streams. Its tools say what they were told to.
"""

import json
import os
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

FATAL = 666
"""Number that ends the server."""


def described(name, about, required=(), /, **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = [
    described("add", "Add two numbers.", ("a", "b"), a={"type": "integer"}, b={"type": "integer"}),
    described("keep", "Keep a note.", ("text",), text={"type": "string"}),
    described("notes", "List the notes."),
]


class Session:
    """A session, with its notes."""

    def __init__(self):
        self.notes = []

    def replies(self, message):
        """Messages that follow one of the client: a question and a notification of the server, then the answer."""
        method, number = message.get("method"), message.get("id")
        if number is None or method is None:
            return
        if method == "tools/call":
            yield {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "working"}}
            yield {"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage", "params": {}}
        try:
            yield {"jsonrpc": "2.0", "id": number, "result": self.result(method, message.get("params", {}))}
        except (KeyError, TypeError, ValueError) as error:
            yield {"jsonrpc": "2.0", "id": number, "error": {"code": -32602, "message": f"bad call: {error}"}}

    def result(self, method, params):
        if method == "initialize":
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes"}}
        if method == "tools/list":  # two pages
            second = params.get("cursor") == "second"
            return {"tools": TOOLS[1:]} if second else {"tools": TOOLS[:1], "nextCursor": "second"}
        name, arguments = params["name"], params["arguments"]
        if name == "add" and arguments["a"] == FATAL:
            os._exit(1)
        if name == "add":
            return self.text(str(arguments["a"] + arguments["b"]))
        if name == "keep":
            self.notes.append(arguments["text"])
            return self.text(f"{len(self.notes)} notes")
        return self.text("\n".join(map(str, self.notes)) or "there are none", error=not self.notes)

    def text(self, text, error=False):
        picture = {"type": "image", "data": "", "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": text}, *[picture] * error], "isError": error}


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP: JSON for a list, a stream of events for everything else."""

    def do_POST(self):
        server, session = self.server, self.headers.get("Mcp-Session-Id")
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.seen.append((self.headers.get("Authorization"), self.headers.get("MCP-Protocol-Version"), session))
        if message.get("method") == "initialize":
            session = f"s{next(server.numbers)}"
            server.sessions[session] = Session()
        if session not in server.sessions:
            self.send_error(404)
            return
        replies = [json.dumps(each) for each in server.sessions[session].replies(message)]
        streams = message.get("method") == "tools/call"
        body = "".join(f"event: message\r\ndata: {each}\r\n\r\n" for each in replies) if streams else "".join(replies)
        self.send_response(200 if replies else 202)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_DELETE(self):
        self.server.sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def http_server():
    """A server on loopback; its address, and the server with its sessions."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sessions, server.seen, server.numbers = {}, [], count()
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main():
    """Speak over the standard streams."""
    session = Session()
    for line in sys.stdin:
        for reply in session.replies(json.loads(line)):
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
