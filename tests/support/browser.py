"""Debian's Chromium, headless, as Playwright drives it. What a page is to show is waited for, never slept for."""

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

PATIENCE = 60_000.0
"""Milliseconds until what is not shown is given up: the machine may be busy with other tests."""
SIZE = {"width": 1280, "height": 800}
HERE = ("http://127.0.0.1:", "file:", "data:", "blob:")
"""Addresses that a page may request."""


@contextmanager
def chromium():
    """A browser; its profile is gone with it."""
    found = shutil.which("chromium")
    assert found is not None, "no chromium on the PATH: make chromium"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser):
    """A page without cookies of any other, which asks nothing of any other machine."""
    asked = []
    context = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.on("request", lambda request: asked.append(request.url))
    try:
        yield context.new_page()
    finally:
        context.close()
    assert [url for url in asked if not url.startswith(HERE)] == []


def row(page, name):
    """The cells after the first one, in the row of a table that begins with ``name``, once there is one."""
    found = page.locator(f"xpath=//tr[*[1][normalize-space()='{name}']]").first
    found.wait_for()
    return [" ".join(text.split()) for text in found.locator("xpath=*[position()>1]").all_inner_texts()]


AXE = Path(__file__).with_name("axe") / "axe.min.js"
"""axe-core 4.11.0 as npm has it, under the Mozilla Public License 2.0 beside it."""
LEVEL_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def findings(page):
    """Violations that axe-core finds on a page, each with its rule and the first element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))  # not as a script of the page, whose policy allows its own alone
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", LEVEL_AA)
    return [(each["id"], each["help"], each["nodes"][0]["html"][:200]) for each in found["violations"]]


COMPARED = """name => {
  const grids = [...document.querySelectorAll(".ReactVirtualized__Grid")].slice(-2);
  const placed = (inside) => inside.closest("[style*='top:']");
  const link = grids.flatMap((grid) => [...grid.querySelectorAll("a")]).find((a) => a.textContent.trim() === name);
  if (!link) {
    for (const grid of grids) grid.scrollTop += 100;
    return null;
  }
  const row = placed(link).style.top;
  const cells = [...grids.at(-1).querySelectorAll("[style*='top:']")].filter((cell) => cell.style.top === row);
  return cells.length ? cells.sort((a, b) => a.offsetLeft - b.offsetLeft).map((cell) => cell.textContent) : null;
}"""
"""A row of MLflow's table of compared metrics, in which only those in sight are there: it is scrolled until this is."""


def compared(page, name):
    """Values of a metric where MLflow compares runs, one for each run."""
    page.get_by_text("Metrics", exact=True).last.scroll_into_view_if_needed()
    return [float(text) for text in page.wait_for_function(COMPARED, arg=name).json_value()]


def urls(text):
    """Where ``coevo ui`` says that Prefect's and MLflow's pages are; the live pages come last."""
    prefect, mlflow, _ = re.findall(r"http://127\.0\.0\.1:\d+", text)
    return prefect, mlflow
