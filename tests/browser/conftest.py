"""One browser for the tests of a module."""

import pytest
from support.browser import chromium, page_of


@pytest.fixture(scope="module")
def browser():
    """For a module alone: while it is open, its thread is an event loop's, which Prefect's client would not like."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser):
    with page_of(browser) as opened:
        yield opened
