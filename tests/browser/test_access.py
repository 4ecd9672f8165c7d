"""Prefect's pages open for the browser that has opened the link, and for no other page of this machine."""

import json
import os
import subprocess
import sys
import urllib.request
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import expect
from support.browser import page_of
from support.scheduled import wait_for

from coevo.flows.servers.server_secret import VARIABLE

pytestmark = pytest.mark.full

OPEN = """
import sys
from pathlib import Path
import typer
from coevo.flows.servers.servers import page_to, prefect_pages
link = prefect_pages(Path(sys.argv[1]))
typer.launch(page_to(link, Path(sys.argv[1])))
print(link)
"""
LAUNCH = """#!/bin/sh
echo "$@" > "$LAUNCHED.part"
mv "$LAUNCHED.part" "$LAUNCHED"
"""
"""The program that opens a browser on Linux."""
ASK = "async () => (await fetch('/api/flows/filter', {method: 'POST'})).status"
ATTACK = """async (url) => {
  const body = new Blob(['{"name": "stolen"}']);
  await fetch(url, {method: "POST", mode: "no-cors", credentials: "include", body});
}"""
"""A request that a page may make of any other: Prefect takes a body without a type for JSON."""


@pytest.fixture
def ask(prefect_url):
    """Ask Prefect, having the secret."""
    secret = b64encode(os.environ[VARIABLE].encode()).decode()

    def asking(path, **body):
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {secret}"}
        request = urllib.request.Request(f"{prefect_url}/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    return asking


@pytest.fixture
def opened(prefect_workspace, tmp_path):
    """Link that ``coevo ui --open`` opens in a browser, and the one that it prints."""
    launch = tmp_path / "xdg-open"
    launch.write_text(LAUNCH)
    launch.chmod(0o755)
    found = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LAUNCHED": str(tmp_path / "launched")}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, prefect_workspace],
        env=os.environ | found,
        capture_output=True,
        text=True,
        check=True,
    )
    wait_for((tmp_path / "launched").is_file)
    return (tmp_path / "launched").read_text().strip(), done.stdout.strip()


def test_a_link_opens_once_and_what_a_browser_sends_is_of_no_use_to_others(browser, page, ask, opened, prefect_url):
    pages, (launched, link) = prefect_url.removesuffix("/api"), opened
    ask("flow_runs/", flow_id=ask("flows/", name="visited")["id"], name="seen-by-a-person", state={"type": "COMPLETED"})
    assert page.goto(f"{pages}/runs").status == 401
    expect(page.get_by_text("`coevo ui`")).to_be_visible()
    token = link.rpartition("/")[2]
    assert token not in launched
    page.goto(Path(launched).as_uri())
    page.wait_for_url(f"{pages}/dashboard")
    page.goto(f"{pages}/runs")
    expect(page.get_by_text("seen-by-a-person", exact=True).first).to_be_visible()
    (cookie,) = page.context.cookies(pages)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert token not in cookie["value"]
    assert page.evaluate(ASK) == 401  # the pages send the key besides
    with page_of(browser) as other:
        assert other.goto(link).status == 401
        other.context.add_cookies([cookie])  # every server at 127.0.0.1 gets it
        assert other.goto(pages).status == 200
        assert other.evaluate(ASK) == 401
    with stranger() as address:
        page.goto(address)
        page.evaluate(ATTACK, f"{prefect_url}/flows/")
    assert "stolen" not in [flow["name"] for flow in ask("flows/filter")]


@contextmanager
def stranger():
    """A page of another port of this machine, to which a browser sends the same cookies."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
