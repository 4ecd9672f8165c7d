"""The report in a browser: read from a file, it asks for nothing, and its table is that of the manifests."""

import pytest
from support import small_run
from support.browser import findings
from support.runs import coevo, states

SUCCESS = f"agent/success/{small_run.PANEL}"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    small_run.build(root)
    done = coevo("report", "first", "--output", root / "first.html", workspace=root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.full
def test_the_report_needs_no_network_and_shows_the_manifests_values(page, report):
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((report / "first.html").as_uri())
    table = page.locator("#table-revisions")
    page.locator("details", has=table).locator("summary").click()
    heads = table.locator("thead th").all_inner_texts()
    column = heads.index(SUCCESS)
    assert shown(table, column) == [metric(state) for state in states(report, "first")]
    table.locator("thead th").nth(column).get_by_role("button").click()
    assert shown(table, column) == ["0.000", "0.500", "1.000", ""]
    assert (asked, wrong) == ([(report / "first.html").as_uri()], [])


@pytest.mark.full
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_has_no_finding_of_axe_at_level_aa(page, report, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto((report / "first.html").as_uri())
    page.evaluate(OPEN)
    assert findings(page) == []


@pytest.mark.full
def test_on_a_phone_text_can_be_read_and_wide_regions_scroll_by_keyboard(page, report):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto((report / "first.html").as_uri())
    page.evaluate(OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.evaluate(TEXT_PIXELS)
    assert min(sizes) >= 11, sizes
    wide = page.locator(".scroll").filter(has=page.locator("svg")).first
    wide.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("region => region.scrollLeft > 0", arg=wide.element_handle())


OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
TEXT_PIXELS = """() => [...document.querySelectorAll("svg text")].map((text) => {
  const size = parseFloat(getComputedStyle(text).fontSize), svg = text.ownerSVGElement;
  return size * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
})"""
"""Sizes of the figures' texts as they are on the screen."""


def shown(table, column):
    """Visible texts of a column."""
    return table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()


def metric(state):
    value = state["metrics"].get(SUCCESS)
    return "" if value is None else f"{value:.3f}"
