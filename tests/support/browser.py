"""Debian's Chromium, headless, as Playwright drives it. What a page is to show is waited for, never slept for."""

import re
import shutil
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

PATIENCE = 60.0
"""Seconds until what is not shown is given up: the machine may be busy with other tests."""
SIZE = {"width": 1280, "height": 800}


@contextmanager
def chromium():
    """A browser; its profile is gone with it."""
    found = shutil.which("chromium")
    assert found is not None, "no chromium on the PATH: make chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser):
    """A page without cookies of any other, at a fixed size."""
    context = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC", reduced_motion="reduce")
    context.set_default_timeout(1000 * PATIENCE)
    try:
        yield context.new_page()
    finally:
        context.close()


def urls(text):
    """Where ``coevo ui`` says that Prefect's and MLflow's pages are."""
    prefect, mlflow = re.findall(r"http://127\.0\.0\.1:\d+", text)
    return prefect, mlflow
