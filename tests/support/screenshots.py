"""Takes the pictures of the guides, of the sample: ``PYTHONPATH=.:tests .venv/bin/python -m support.screenshots``.

With ``watch``, those of the live page alone, which needs no server of Prefect and MLflow. A folder after it gets them
in place of ``docs/pictures``.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from support.browser import SIZE, chromium, page_of
from support.migrated import copy_databases
from support.pages import showing
from support.runs import ROOT, coevo
from support.watched import indexed, served

from coevo.flows.sample import RUN
from coevo.flows.sample.open_sample import unpack
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store

PICTURES = ROOT / "docs" / "pictures"
WIDTH = 944
"""Pixels from the left: what is beyond, MLflow fills with its assistant."""
PHONE = 390
"""Pixels of a phone's width."""
LESSON = "e989efb7d492"
COLOURS = 128
"""Enough for pages, in a third of the bytes."""


def take(shown, page, into):
    """Each page once something of it is there."""
    shown.enter(page)
    mlflow = shown.enter_mlflow(page)
    traces = client(tracking_store(shown.workspace.root)).search_traces(
        locations=[shown.experiment], filter_string="tags.`coevo.outcome` = 'success'"
    )
    report = shown.workspace.root / "report.html"
    assert coevo("report", RUN, "--output", report, workspace=shown.workspace.root).returncode == 0
    for name, url, text in (
        ("mlflow-run", mlflow + shown.of_run(), "agent/success/seen-houses"),
        ("mlflow-bank", mlflow + shown.of_run("/artifacts/bank/changes-r3.json"), "admitted"),
        ("mlflow-trace", mlflow + shown.of_trace(traces[0].info.trace_id), "retrieve 1"),
        ("prefect-revision", shown.of_revision(3), "agent/success/train"),
        ("report", report.as_uri(), "Lineage"),
    ):
        page.goto(url)
        page.get_by_text(text, exact=True).first.wait_for()
        shoot(page, into / f"{name}.png", WIDTH)


def shoot(page, file, width):
    """The upper part of a page."""
    page.screenshot(path=file, clip={"x": 0, "y": 0, "width": width, "height": 800})
    Image.open(file).quantize(COLOURS).save(file, optimize=True)


WATCHED = {
    "watch-overview": ("", "figure[data-plot=success][data-ready]"),
    "watch-lesson": (f"/lessons/{LESSON}", "#lesson"),
    "watch-group": ("/r/40/tasks/d4f3a0d6082cc73e", "article"),
    "watch-episode": ("/episodes?outcome=failed", "a.failed"),
}
"""Picture of the live page: its address below the run's, and an element that it waits for."""


def take_watched(url, page, into):
    """Pictures of the live page, and one as a phone shows it."""
    for name, (path, element) in WATCHED.items():
        page.goto(f"{url}/runs/{RUN}{path}")
        page.locator(element).first.wait_for()
        if name == "watch-episode":
            page.locator(element).first.click()
            page.locator("article.turn").first.wait_for()
        shoot(page, into / f"{name}.png", SIZE["width"])
    page.set_viewport_size({"width": PHONE, "height": 800})
    page.goto(f"{url}/runs/{RUN}")
    page.locator("figure[data-plot=success][data-ready]").wait_for()
    shoot(page, into / "watch-phone.png", PHONE)


def watched(into):
    """Take the pictures of the live page."""
    with TemporaryDirectory() as root, chromium() as browser, page_of(browser) as page:
        workspace = unpack(Path(root))
        indexed(workspace.existing(RUN))
        with served(workspace) as url:
            take_watched(url, page, into)


def main(into, only=""):
    into.mkdir(exist_ok=True)
    watched(into)
    if only == "watch":
        return
    databases = copy_databases()
    with TemporaryDirectory() as root, showing(Path(root)) as shown, chromium() as browser, page_of(browser) as page:
        take(shown, page, into)
    del databases


if __name__ == "__main__":
    asked = sys.argv[1:]
    chosen = asked.pop(0) if asked[:1] == ["watch"] else ""
    main(Path(asked[0]) if asked else PICTURES, chosen)
