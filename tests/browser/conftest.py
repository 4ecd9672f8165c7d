"""One browser for the tests of this folder."""

import pytest
from support.browser import chromium, page_of


@pytest.fixture(scope="module")
def browser():
    """For a module alone: while it is open, its thread is an event loop's, which Prefect's client would not like."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser):
    """A page that asks nothing of anybody but this machine."""
    asked = []
    with page_of(browser) as opened:
        opened.on("request", lambda request: asked.append(request.url))
        yield opened
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))] == []
