"""Takes the pictures of the guides, of the sample: ``PYTHONPATH=.:tests .venv/bin/python -m support.screenshots``."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from support.browser import chromium, page_of
from support.migrated import copy_databases
from support.pages import showing
from support.runs import ROOT, coevo

from coevo.flows.sample import RUN
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store

PICTURES = ROOT / "docs" / "pictures"
WIDTH = 944
"""Pixels from the left: what is beyond, MLflow fills with its assistant."""
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
        file = into / f"{name}.png"
        page.screenshot(path=file, clip={"x": 0, "y": 0, "width": WIDTH, "height": 800})
        Image.open(file).quantize(COLOURS).save(file, optimize=True)


def main(into):
    into.mkdir(exist_ok=True)
    databases = copy_databases()
    with TemporaryDirectory() as root, showing(Path(root)) as shown, chromium() as browser, page_of(browser) as page:
        take(shown, page, into)
    del databases


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PICTURES)
