"""The live page in a browser, wide and narrow: figures, slider, search, a way to each answer, and inert text."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from support import small_run
from support.browser import page_of
from support.watched import DrawnRun, hostile_run, indexed, served

from coevo.flows.history.revision_reference import reading
from coevo.flows.history.success import held_out_success
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.change import BankChange
from coevo.tasks.publish.reporter import PhaseRecorder, Silent

pytestmark = pytest.mark.full
WIDTHS = {"wide": 1280, "narrow": 390}
DIRECTIONS = r"/[\u202a-\u202e\u2066-\u2069]/"
OWNED = "document.documentElement.dataset.owned === '1'"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("watched")
    indexed(small_run.build(root))
    with served(Workspace(root)) as url:
        yield Workspace(root), f"{url}/runs/first"


@pytest.fixture(params=WIDTHS)
def view(request, page):
    """A page of this width that has logged no error."""
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.set_viewport_size({"width": WIDTHS[request.param], "height": 800})
    yield page
    assert wrong == []
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[request.param]


def test_the_slider_shows_the_figures_of_each_manifest(view, site):
    workspace, url = site
    view.goto(url)
    expect(view.locator("figure[data-plot=success] canvas")).to_be_visible()
    with reading("first", workspace) as opened:
        for manifest in opened.history:
            view.locator("#rev").fill(str(manifest.revision))
            expect(view.locator("#part h2").first).to_have_text(f"Revision {manifest.revision}")
            found = held_out_success(manifest)
            wanted = "–" if found is None else f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
            expect(view.locator("#held")).to_have_text(wanted)
            expect(view.locator("h1")).to_have_text(f"first@{manifest.revision}")
    assert view.url.endswith("rev=3")  # the address leads back to the same view
    view.reload()
    expect(view.locator("#rev-shown")).to_have_text("3")


def test_why_did_it_fail_is_three_clicks_away(view, site):
    _, url = site
    view.goto(f"{url}?rev=2")
    view.get_by_role("link", name="Episodes").click()
    view.locator("#outcome").select_option("failed")
    expect(view.locator("#total")).to_have_text("2 episodes of 2 tasks, 0 solved")
    view.locator("a.failed").first.click()
    expect(view.locator("#use")).to_have_text("not followed")
    expect(view.locator("article.turn")).to_have_count(2)
    expect(view.get_by_text(small_run.SAFE).first).to_be_visible()
    view.locator("article.turn ol a").first.click()
    expect(view.locator("#lesson")).to_have_text(small_run.SAFE)


def test_rejected_candidates_and_their_reasons_are_two_clicks_away(view, site):
    _, url = site
    view.goto(f"{url}?rev=2")
    view.locator("#what a").click()
    expect(view.locator("#candidates")).to_contain_text("needs a lower bound above 0; has -0.500")
    expect(view.locator("#candidates")).to_contain_text(small_run.STOVE)
    view.locator("#rev").fill("1")
    expect(view.locator("#total")).to_have_text("0 rejected, 1 admitted")


def test_commands_for_the_run_follow_the_slider(view, site):
    _, url = site
    view.goto(f"{url}?rev=2")
    view.locator("#rev").fill("3")
    expect(view.locator("#part h2").first).to_have_text("Revision 3")
    view.locator("#commands summary").click()
    expect(view.locator("#commands")).to_contain_text("coevo explain first@3 --since 2")


def test_a_chart_shows_the_values_of_the_revision_under_the_pointer(view, site):
    workspace, url = site
    view.goto(url)
    said = view.locator("figure[data-plot=success] .u-legend .u-value")
    view.locator("#rev").fill("2")
    expect(said.first).to_have_text("2")  # without a pointer, those of the slider's revision
    over = view.locator("figure[data-plot=success] .u-over")
    box = over.bounding_box()
    over.hover(position={"x": 1, "y": box["height"] / 2})
    expect(said.first).to_have_text("0")
    over.hover(position={"x": box["width"] - 1, "y": box["height"] / 2})
    expect(said.first).to_have_text("3")
    with reading("first", workspace) as opened:
        expect(said.last).to_have_text(f"{held_out_success(opened.manifest).mean:.3f}")


def test_an_axis_of_small_numbers_has_digits(view, tmp_path):
    run = DrawnRun(tmp_path, 0)
    for number in range(1, 4):
        run.metrics = {"policy/update/mismatch_mean": number * 1e-7, "policy/update/kl": number * 0.01}
        run.commit(BankChange(), [])
    indexed(run.paths)
    with served(run.workspace) as url:
        view.goto(f"{url}/runs/drawn")
        for name, given in (("policy/update/mismatch_mean", "3.0e-7"), ("policy/update/kl", "0.030")):
            figure = view.locator(f"figure[data-plot='{name}']")
            expect(figure.locator("canvas")).to_be_visible()
            said = figure.locator("[role=img]").get_attribute("aria-label").partition("; the axis goes by ")[2]
            assert len({*said.split(", ")}) == len(said.split(", ")) > 2, said
            over = figure.locator(".u-over")
            over.hover(position={"x": over.bounding_box()["width"] - 1, "y": 9})
            expect(figure.locator(".u-value").last).to_have_text(given)


def test_the_bank_is_searched_and_compared_in_place(view, site):
    _, url = site
    view.goto(f"{url}/bank?rev=3&from=0")
    expect(view.locator("#added")).to_have_text("2")
    view.locator("#q").press_sequentially("MICROWAVE")
    expect(view.locator("#total")).to_have_text("1 entries with “MICROWAVE”")
    expect(view.locator("#q")).to_be_focused()
    view.locator("#q").fill("")
    view.locator("#from").fill("2")
    expect(view.locator("#edited")).to_have_text("1")
    view.locator("#rev").fill("1")
    expect(view.get_by_text(small_run.SAFE).first).to_be_visible()


def test_what_leads_on_from_a_page_follows_the_slider(view, site):
    _, url = site
    view.goto(f"{url}/bank?rev=3")
    expect(view.locator("#from")).to_have_value("2")
    view.locator("#rev").fill("1")
    expect(view.locator("#from")).to_have_value("0")
    view.get_by_role("link", name="Overview").click()
    expect(view.locator("#part h2").first).to_have_text("Revision 1")


def test_a_page_works_with_the_keyboard_and_without_scripts(browser, site):
    _, url = site
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/bank")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.locator("#q").fill("microwave")
    page.keyboard.press("Enter")
    expect(page.locator("#total")).to_have_text("1 entries with “microwave”")
    context.close()


@pytest.mark.parametrize("escaping", [True, False])
def test_no_text_acts_escaped_or_not(browser, tmp_path, escaping):
    run, lesson, task = hostile_run(tmp_path)
    indexed(run.paths)
    paths = (
        "",
        "/bank",
        f"/lessons/{quote(lesson.id, safe='')}",
        "/episodes",
        f"/r/1/tasks/{task.id}",
        "/r/1/training/1",
    )
    with served(run.workspace, escaping) as url, page_of(browser) as page:
        for path in paths:
            page.goto(f"{url}/runs/hostile{path}", wait_until="load")
            expect(page.locator("main")).to_be_attached()
            assert not page.evaluate(OWNED), path
            if escaping:
                assert page.locator("main iframe, main img, main svg, main style").count() == 0
                assert page.locator("html").evaluate(
                    "(html) => !/[\\u202a-\\u202e\\u2066-\\u2069]/.test(html.textContent)"
                )


def test_phases_and_revisions_arrive_on_open_pages_of_which_one_listens(browser, tmp_path):
    run = DrawnRun(tmp_path, 3)
    indexed(run.paths)
    with served(run.workspace) as url, page_of(browser) as page:
        tabs = [page, *(page.context.new_page() for _ in range(7))]
        for tab in tabs:
            tab.goto(f"{url}/runs/drawn")
            expect(tab.locator("#part h2").first).to_be_visible()
        expect(page.locator("body[data-leads=drawn]")).to_have_count(1)
        with writer_lock(run.paths):
            recorder = PhaseRecorder(run.paths, Silent())
            recorder.note("r1 rollout: 3 of 8 episodes")
            for tab in tabs:
                expect(tab.locator("#phases")).to_contain_text("r1 rollout: 3 of 8 episodes")
                expect(tab.locator("#status")).to_contain_text("running")
            recorder.close()
        assert [tab.evaluate("document.body.dataset.leads || ''") for tab in tabs] == ["drawn", *[""] * 7]
        page.close()  # another one takes over
        run.step()
        for tab in tabs[1:]:
            expect(tab.locator("#live")).to_be_hidden()
            expect(tab.locator("#fresh")).to_contain_text("Revision 1 is there")
