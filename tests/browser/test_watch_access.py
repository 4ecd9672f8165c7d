"""No page of a run breaks a rule of accessibility that axe-core can tell, in either theme, wide and narrow."""

from dataclasses import replace

import pytest
from support import small_run
from support.browser import findings
from support.watched import DrawnRun, indexed, served

from coevo.lineage.workspace import Workspace
from coevo.memory.bank.change import BankChange
from coevo.tasks.publish.turn_figures import write_turn_figures

pytestmark = pytest.mark.full
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
PARTS = ("meter", "#contradicting", ".sides", "#seconds", "form.change", ".marks", "details", "table caption")
ONE = small_run.entry("heat the mug with the microwave before you put it down", "heat mug", "go")
OTHER = small_run.entry("heat the mug with the stove before you put it down", "heat mug", "go")


def full_run(root):
    """A run whose pages have every part: a distribution, contradicting entries, seconds and scores, two sides."""
    run = DrawnRun(root, 0, "full")
    run.metrics = {f"policy/advantage_histogram/from_{edge:.1f}": 2.0 for edge in (-0.5, 0.0, 0.5)}
    run.metrics |= {"policy/update/kl": 0.1, "policy/update/entropy": 0.2, "cost/seconds/wall": 3.0}
    told = [
        replace(each, turns=tuple(replace(turn, seconds=0.5, lesson_scores=(0.7,)) for turn in each.turns))
        for each in small_run.episodes(1, (ONE,))
    ]
    judged = (small_run.judged(1, (ONE,), (1.0, 0.0, 1.0)), small_run.judged(1, (OTHER,), (-1.0, 0.0, -1.0)))
    run.commit(BankChange(entries=(ONE, OTHER), judged=judged), [*told[:2], *small_run.episodes(1)[2:]])
    write_turn_figures(run.paths, 1, told)
    return indexed(run.paths)


def addresses(name):
    yield from (
        "/runs",
        f"/runs/{name}",
        f"/runs/{name}/revisions",
        f"/runs/{name}/bank?from=0",
        f"/runs/{name}/approval",
    )
    yield from (f"/runs/{name}/candidates?rev=1", f"/runs/{name}/bank?q=heat+mug", f"/runs/{name}/bank?unread=1")
    yield from (f"/runs/{name}/lessons/{ONE.id}", f"/runs/{name}/episodes?set=training", f"/runs/{name}/lessons/none")
    yield from (f"/runs/{name}/r/1/tasks/{small_run.TASK.id}", f"/runs/{name}/r/1/training/0", f"/runs/{name}/approval")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("accessible")
    full_run(root)
    indexed(small_run.build(root))
    with served(Workspace(root)) as url:
        yield [
            *(f"{url}{path}" for path in addresses("full")),
            *(f"{url}/runs/first{path}" for path in ("", "/episodes?rev=2", "/r/2/held-out/0", "/bank?rev=3&from=0")),
        ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_has_a_finding_of_axe(page, site, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    found, elements = {}, set()
    for address in site:
        page.goto(address)
        page.evaluate(OPEN)
        elements |= {each for each in PARTS if page.locator(each).count()}
        wide = page.evaluate("document.documentElement.scrollWidth")
        found[address] = [*findings(page), *([wide] if wide > width else [])]
    assert {address: each for address, each in found.items() if each} == {}
    assert elements == set(PARTS)  # every part was there
