"""Requests to an endpoint as an attacker sends them: any bytes, any headers, over a socket."""

import http.client
import json
import socket
from urllib.parse import urlsplit

ROW = {"instruction": "house lotus . task heat mug to counter", "observation": "at hall hold nothing"}
HEADERS = {"Content-Type": "application/json"}


def post(url, body, headers=None, path="/invocations", method="POST"):
    """Status and body of the answer to any bytes."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=400)
    try:
        connection.request(method, path, body, HEADERS | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def rows(*given, **more):
    return json.dumps({"dataframe_records": list(given), **more}).encode()


def changed(**fields):
    """A request of one row with other fields; without those that are Ellipsis."""
    return rows({name: value for name, value in {**ROW, **fields}.items() if value is not ...})


def streamed(url, chunks):
    """Status line of the answer to a body without a length, of which each chunk is sent as long as it is taken."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        head = f"POST /invocations HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for chunk in chunks:
                connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            connection.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # the server has answered and hung up
        return connection.makefile("rb").readline()


def is_one_line(body):
    """Whether a refusal says why on one line, with neither a trace nor a path."""
    message = json.loads(body)["message"]
    return "\n" not in body.decode() and message and "Traceback" not in message and "/" not in message


DEEP = b'{"dataframe_records": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HUGE = b'{"dataframe_records": [' + b"9" * 100_000 + b"]}"
SURROGATE = rows(ROW).replace(b"hold nothing", b"hold \\ud800")
WRONG = {
    "empty": b"",
    "no JSON": b"mug",
    "half of it": rows(ROW)[:40],
    "not UTF-8": b"\xff\xfe\x00",
    "NUL": b"\0" * 100,
    "null": b"null",
    "NaN": b"NaN",
    "a number": b"7",
    "a list": b"[]",
    "no rows": b"{}",
    "an empty list": rows(),
    "no list": b'{"dataframe_records": 7}',
    "rows twice": b'{"dataframe_records": [], "inputs": []}',
    "another key": b'{"prompt": "mug"}',
    "rows of numbers": rows(1, 2),
    "rows of null": rows(None),
    "rows of lists": rows([[]]),
    "nested": DEEP,
    "a huge number": HUGE,
    "a lone surrogate": SURROGATE,
    "a number for text": changed(instruction=3),
    "null for text": changed(observation=None),
    "a list for text": changed(observation=["at hall"]),
    "an object for text": changed(scope={"a": 1}),
    "NaN for text": rows(ROW).replace(b'"at hall hold nothing"', b"NaN"),
    "a huge number for text": changed(instruction=10**4000),
    "no instruction": changed(instruction=...),
    "an unknown column": changed(histroy=[]),
    "text for history": changed(history="go safe"),
    "history of numbers": changed(history=[1]),
    "half a turn": changed(history=[{"observation": "at hall"}]),
    "text for the seed": rows(ROW, params={"seed": "7"}),
    "a fraction for the seed": rows(ROW, params={"seed": 1.5}),
    "a seed of 300 digits": rows(ROW, params={"seed": 10**300}),
    "an unknown parameter": rows(ROW, params={"temperature": 2}),
    "a list of parameters": rows(ROW, params=[1]),
    "columns without values": b'{"dataframe_split": {"columns": ["instruction"], "data": [[]]}}',
    "a column twice": b'{"dataframe_split": {"columns": ["instruction", "observation", "scope", "scope"], '
    b'"data": [["heat mug", "at hall", "lotus", ""]]}}',
    "100,000 wrong turns": changed(history=[1] * 100_000),
}
"""Bodies that are no request: 422."""
LARGE = {
    "10^5 rows": rows(*[ROW] * 10**5),
    "10^5 empty rows": b'{"dataframe_records": [' + b"{}," * (10**5 - 1) + b"{}]}",
    "a long text": changed(instruction="mug " * 20_000),
    "a long history": changed(history=[{"observation": "mug", "action": "go", "feedback": "mug"}] * 20_000),
    "turns without text": changed(history=[{"observation": "", "action": "", "feedback": ""}] * 3000),
    "257 rows": rows(*[ROW] * 257),
    "20 MB": changed(instruction="mug " * 5_000_000),
    "20 MB of spaces": b" " * 20_000_000,
}
"""Bodies beyond the limits: 413."""
