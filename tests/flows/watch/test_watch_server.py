"""The server listens on loopback behind the guard, opens by a link that works once, and ends although pages listen."""

import http.client
import json
import re
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from support import small_run
from support.runs import coevo

from coevo.flows.servers.daemon import recorded
from coevo.flows.watch.page_templates import STATIC

DIGESTS = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""SHA-256 of the files of uPlot 1.6.32 as its authors publish them."""


def test_what_others_wrote_is_as_they_published_it():
    from hashlib import sha256

    assert {name: sha256((STATIC / name).read_bytes()).hexdigest() for name in DIGESTS} == DIGESTS
    assert "MIT License" in (STATIC / "uPlot.LICENSE").read_text()


def ask(url, path, **headers):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return connection, answer


def text_of(url, path, **headers):
    connection, answer = ask(url, path, **headers)
    with closing(connection):
        return answer.status, answer.read().decode(), answer.headers


@pytest.fixture
def ended(tmp_path):
    """A workspace whose servers are ended, whatever happens."""
    yield tmp_path
    coevo("down", workspace=tmp_path)


@pytest.mark.full
def test_a_link_opens_the_pages_once_and_down_ends_them(ended):
    tmp_path = ended
    small_run.build(tmp_path)
    done = coevo("watch", "first", "--json", workspace=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    parts = urlsplit(told["url"])
    url = f"http://{parts.netloc}"
    assert (parts.hostname, parts.fragment) == ("127.0.0.1", "first")
    assert text_of(url, "/runs")[0] == 401
    status, page, headers = text_of(url, parts.path)
    assert status == 200
    status, said, _ = text_of(url, parts.path)
    assert (status, "a new link of `coevo watch RUN`" in said) == (401, True)
    key, cookie = re.search(r'replace\("/([^/]+)/"', page)[1], headers["set-cookie"].partition(";")[0]
    status, page, headers = text_of(url, f"/{key}/runs/first", Cookie=cookie)
    assert (status, "first<span" in page) == (200, True)
    assert "require-trusted-types-for" in headers["content-security-policy"]
    assert text_of(url, f"/{key}/runs/first")[0] == 401
    assert text_of(url, f"/{key}/runs/first", Cookie=cookie, Host="example.org")[0] == 403
    again = json.loads(coevo("watch", "first", "--json", workspace=tmp_path).stdout)
    assert (urlsplit(again["url"]).netloc, again["token"]) == (parts.netloc, told["token"])
    assert again["url"] != told["url"]
    connection, answer = ask(url, f"/{key}/runs/first/live", Cookie=cookie)
    assert answer.readline().startswith(b"data: ")
    processes = [server for server in recorded(tmp_path) if server.name == "watch"]
    assert coevo("down", workspace=tmp_path).returncode == 0
    assert not any(server.runs() for server in processes)
    connection.close()


@pytest.mark.full
def test_an_unknown_run_starts_no_server(tmp_path):
    done = coevo("watch", "none", workspace=tmp_path)
    assert (done.returncode, "none" in done.stderr) == (2, True)
    assert recorded(tmp_path) == []
