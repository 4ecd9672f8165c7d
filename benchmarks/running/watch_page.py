"""``coevo watch`` of a run of 2,000 revisions in a browser: index, first paint, views, slider, search, eight tabs.

The run is made with the real stores. Times of pages are medians of several loads in a headless Chromium; ``--check``
compares none of them, since they depend on the machine's other load. Beside a training, the page is open in a tab that
listens, and what counts is the processor time of its server from when the page is there.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.command import COMMAND, coevo
from benchmarks.running import large_run
from coevo.configs.load.load import load_recipe
from coevo.flows.servers.daemon import settled
from coevo.flows.servers.servers import new_link
from coevo.flows.watch.index_build import FOLDER, RunIndex
from coevo.flows.watch.watch_server import ensure_watch
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.records.arrow import episodes_to_table
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

REVISIONS, EPISODES, TURNS, SHOWN, ADDED = 2000, 50, 4, 3, 5
TASKS, GROUP, TABS, REPEATS = 192, 5, 8, 5
RUN, KINDS = "watched", ("put", "heat", "cool", "clean")
TRAINING, ITERATIONS = "trains", 40
"""Run beside which the page is open, and its iterations; they begin to count when the page is there."""
SHARE = 0.01
"""Target of the server's processor time in the training's seconds."""
ROLLBACK_EVERY, RETIRE_EVERY, EVALUATE_EVERY = 200, 4, 10
TIMEOUT_MS = 120_000.0
"""Milliseconds until a page that does not come is given up."""
TARGETS = {
    "index_seconds": 20, "revision_seconds": 0.5, "paint_ms": 300, "view_ms": 200, "slider_ms": 250, "search_ms": 250,
    "cold_kb": 100,
}  # fmt: skip


def run(bench: Bench) -> None:
    """Measure it where it is missing, and print it as JSON."""
    found = bench.cell(f"{REVISIONS}-revisions", lambda: measure(bench.workspace))
    print(json.dumps({"targets": TARGETS, **found}, indent=1))
    beside = bench.cell("beside-a-training", lambda: measure_beside(Workspace(bench.workspace.root / "beside")))
    print(f"beside a training: {beside['share']:.2%} of its time (target {SHARE:.0%})")


def measure(workspace: Workspace, revisions: int = REVISIONS) -> BenchResult:
    """Seconds of the index, and milliseconds of the pages."""
    paths = _built(workspace, revisions) or build(workspace, revisions)
    index = RunIndex(paths)
    index.remove()
    began, used = time.monotonic(), time.process_time()
    index.update()
    spent = {"index_seconds": time.monotonic() - began, "index_cpu_seconds": time.process_time() - used}
    seconds = {**spent, "index_mb": index.file.stat().st_size / 1e6}
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        _commit(lineage, paths, Bank(paths.bank), _Drawn(revisions, paths))
    began = time.monotonic()
    index.update()
    seconds["revision_seconds"] = time.monotonic() - began
    try:
        return {**seconds, **_pages(paths), "revisions": revisions, "episodes": revisions * EPISODES}
    finally:
        coevo(workspace, "down")


def measure_beside(workspace: Workspace) -> BenchResult:
    """Processor seconds of the page's server in the seconds of a default run, whose page is open in a browser."""
    shutil.rmtree(workspace.root, ignore_errors=True)
    started = [*COMMAND, "run", large_run.RECIPE, "--name", TRAINING, f"iterations={ITERATIONS}"]
    with subprocess.Popen([*started, "--workspace", str(workspace.root)], cwd=ROOT) as training:
        try:
            while training.poll() is None and not workspace.run(TRAINING).lineage.is_dir():
                time.sleep(0.1)
            with _opened(workspace):
                began, used = time.monotonic(), _processor_seconds(workspace)
                if training.wait() != 0:
                    raise CoevoError(f"the training ended with exit code {training.returncode}: see what it says above")
                seconds, spent = time.monotonic() - began, _processor_seconds(workspace) - used
        finally:
            training.kill()
            coevo(workspace, "down")
    return {"share": spent / seconds, "server_seconds": spent, "seconds": seconds, "iterations": ITERATIONS}


@contextmanager
def _opened(workspace: Workspace) -> Iterator[None]:
    """The page of the training in a tab, for as long as it trains."""
    url, secret = ensure_watch(workspace.root)
    with _browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{new_link(url, secret, 'page')}#{TRAINING}")
        page.wait_for_selector("body[data-leads]")
        yield


def _processor_seconds(workspace: Workspace) -> float:
    """Seconds that the page's server and the processes that it started, ended ones too, have used."""
    server = settled(workspace.root, FOLDER)
    if server is None:
        raise CoevoError("the live page's server has ended: see its log in the workspace")
    own = psutil.Process(server.pid)
    ended = own.cpu_times()
    used = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return float(ended.children_user + ended.children_system + sum(each.user + each.system for each in used))


def build(workspace: Workspace, revisions: int) -> RunPaths:
    """Commit the run anew, with some rollbacks."""
    shutil.rmtree(workspace.root, ignore_errors=True)
    paths = workspace.create(RUN, load_recipe(large_run.RECIPE, []))
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        for revision in range(revisions):
            if revision % ROLLBACK_EVERY == ROLLBACK_EVERY - 1:
                lineage.rollback(revision - 3, bank)
            else:
                _commit(lineage, paths, bank, _Drawn(revision, paths))
    return paths


def _built(workspace: Workspace, revisions: int) -> RunPaths | None:
    """The run, if an earlier start of the benchmark has made all of it."""
    paths = workspace.run(RUN)
    if not paths.lineage.is_dir():
        return None
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        return paths if len(lineage.history.commits()) >= revisions else None


class _Drawn:
    """Content of a revision of the run."""

    def __init__(self, revision: int, paths: RunPaths) -> None:
        self.revision, self.config = revision, paths.read_config()
        self.draws = np.random.default_rng(revision)

    def change(self, bank: Bank) -> BankChange:
        """Lessons that enter, and now and then one that leaves."""
        here = self.revision
        entered = [large_run.entry(number, here) for number in range(here * ADDED, (here + 1) * ADDED)] if here else []
        if here > 8 and here % RETIRE_EVERY == 0:
            rows = bank.rows()
            known = {name: row for row, name in enumerate(rows["id"].to_pylist())}
            old = large_run.entry((here - 5) * ADDED, here - 5)
            if old.id in known and rows["retired"][known[old.id]].as_py() < 0:
                entered.append(replace(old, retired=here))
        return BankChange(entries=tuple(entered))

    def episodes(self) -> Iterator[Episode]:
        """A batch of groups, each of which read some lessons of before."""
        here = self.revision
        completion = Completion((5, 6, 7), (-0.1, -0.2, -0.3), "think lotus mug in safe act go safe", True)
        for number in range(EPISODES if here else 0):
            task = Task("homerules", KINDS[number % 4], f"task {here} {number // GROUP}", "lotus", "train", {})
            past = self.draws.integers(ADDED, max(ADDED + 1, here * ADDED), SHOWN) if here > 1 else ()
            seen = tuple(dict.fromkeys(large_run.entry(int(each), int(each) // ADDED).id for each in past))
            turn = Turn("at hall", tuple(range(40)), completion, "go safe", "see mug", 0.0, True, seen)
            name = Episode.name(here, f"rollout-{here - 1}", task, number % GROUP)
            yield Episode(name, task, here, number % GROUP, (turn,) * TURNS, bool(self.draws.random() < 0.5), False)

    def state(self, bank: Bank) -> dict[str, Any]:
        """State of its manifest."""
        here, draws = self.revision, self.draws
        marks = "".join(map(str, draws.integers(0, 2, TASKS))) if here % EVALUATE_EVERY == 0 else ""
        outcomes = {"seen-houses": marks} if marks else {}
        success = {"agent/success/seen-houses": marks.count("1") / TASKS} if marks else {}
        trained = {"agent/success/train": float(draws.random()), "agent/success_stderr/train": 0.05} if here else {}
        update = {f"policy/update/{name}": float(draws.random()) for name in ("kl", "entropy", "grad_norm")}
        return {
            "iteration": here,
            "fired": here,
            "config": self.config.model_dump(mode="json"),
            "config_hash": self.config.digest(),
            "code": "",
            "accepted_change": [],
            "tables": bank.hashes(),
            "panels": dict.fromkeys(outcomes, "p" * 64),
            "outcomes": outcomes,
            "metrics": {**success, **trained, **update, "bank/size": float(bank.size()), "cost/episodes": 50.0},
        }


def _commit(lineage: Lineage, paths: RunPaths, bank: Bank, drawn: _Drawn) -> None:
    bank.merge(drawn.change(bank))
    staged = paths.staging / "episodes"
    staged.mkdir(parents=True)
    pq.write_table(episodes_to_table(drawn.episodes()), staged / "episodes.parquet")
    observed = {"run": paths.name, "tables": bank.versions(), "metrics": {"cost/seconds/wall": 10.0}}
    lineage.commit({"episodes": staged}, drawn.state(bank), observed)


def _pages(paths: RunPaths) -> dict[str, Any]:
    """Times in a browser, in milliseconds, and bytes of the first page."""
    url, secret = ensure_watch(paths.workspace.root)
    with _browser() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        received = list[int]()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", lambda event: received.append(int(event["encodedDataLength"])))
        page.goto(f"{new_link(url, secret, 'page')}#{paths.name}")
        page.wait_for_selector("figure.plot[data-ready]")
        found: dict[str, Any] = {"cold_kb": sum(received) / 1000}
        base = page.url
        page.goto(f"{base}/bank")
        entry = page.locator("tbody th a").first.inner_text()
        found["paint_ms"] = _median(partial(_paint, page, base))
        paths_of_views = ("", "/revisions", "/bank", "/bank?from=1000", f"/lessons/{entry}", "/episodes?set=training")
        views = {path or "/": _median(partial(_paint, page, base + path)) for path in paths_of_views}
        found["views_ms"], found["view_ms"] = views, max(views.values())
        page.goto(base)
        page.wait_for_selector("figure.plot[data-ready]")
        found["slider_ms"] = median(_change(page, "#rev", str(each)) for each in (100, 900, 1500, 30, 700))
        page.goto(f"{base}/bank")
        found["search_ms"] = median(_change(page, "#q", f"word{each}") for each in (1, 22, 333, 4, 55))
        tabs = [context.new_page() for _ in range(TABS)]
        found["tabs_ms"] = [_paint(tab, base) for tab in tabs]
        found["tabs_that_listen"] = sum(bool(tab.evaluate("document.body.dataset.leads")) for tab in [page, *tabs])
    return found


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


def _median(measured: Callable[[], float]) -> float:
    return median(measured() for _ in range(REPEATS))


def _paint(page: Any, url: str) -> float:
    """Milliseconds until the first content of a page was painted."""
    page.goto(url)
    # Waiting for a function would evaluate a text in the page, which its policy forbids.
    script = """() => new Promise((done) => new PerformanceObserver((list) => {
      const found = list.getEntriesByName("first-contentful-paint");
      if (found.length) done(found[0].startTime);
    }).observe({ type: "paint", buffered: true }))"""
    return float(page.evaluate(script))


def _change(page: Any, field: str, value: str) -> float:
    """Milliseconds from an input until its part of the page has changed."""
    script = """([field, value]) => new Promise((done) => {
      const began = performance.now(), before = document.body.dataset.part;
      new MutationObserver(() => document.body.dataset.part !== before && done(performance.now() - began))
        .observe(document.body, { attributes: true });
      const element = document.querySelector(field);
      element.value = value;
      element.dispatchEvent(new Event("input", { bubbles: true }));
    })"""
    return float(page.evaluate(script, [field, value]))
