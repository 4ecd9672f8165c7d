"""Candidates with reasons, commands with their arguments, lessons as retrieval ranks them, and who read a lesson."""

import html
import re
import shlex
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from support import small_run
from support.html_page import parsed
from support.watched import FRESH_TEXT, HOSTILE_TEXT, TOKEN, DrawnRun, hostile_run, indexed

from coevo.flows.cli.app import main
from coevo.flows.history.revision_reference import reading
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.workspace import Workspace
from coevo.memory.admission.admission import Decision
from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank.change import BankChange
from coevo.tasks.pending_revision import HeldOutEpisode
from coevo.tasks.play.retrieve import index_of
from coevo.tasks.revision_artifacts import write_held_out
from coevo.tasks.run.approval import FOLDER, write_proposal

ONE, OTHER = small_run.entry("lotus mug in safe", "mug", "go"), small_run.entry("lotus cup in bin", "cup", "go")
GIVEN = replace(small_run.entry("iris mug in bowl", "mug", "go"), id="f" * 12)
PANELS = ("seen-houses", "other-facts")


def asked(workspace):
    return TestClient(watch_app(WatchSite(workspace, TOKEN)), base_url="http://127.0.0.1", follow_redirects=False)


def text_of(page, name):
    return " ".join(next(each for each in parsed(page).all() if each.attributes.get("id") == name).text.split())


def rows_of(page, name):
    """Cells of each row of a table's body."""
    table = next(each for each in parsed(page).all("table") if each.attributes.get("id") == name)
    cells = [[cell for cell in row.all() if cell.tag in ("th", "td")] for row in table.one("tbody").all("tr")]
    return [[" ".join(cell.text.split()) for cell in row] for row in cells]


@pytest.fixture
def first(tmp_path):
    indexed(small_run.build(tmp_path))
    return Workspace(tmp_path)


def test_what_happened_leads_to_the_candidates_with_verdict_interval_bound_and_reason(first):
    client = asked(first)
    page = client.get("/runs/first?rev=2").text
    (what,) = re.findall(r'id="what"><a href="[./]*(/runs[^"]*)">1 rejected', page)
    page = client.get(what).text
    with reading("first@2", first) as opened:
        (said,) = [each.verdict for each in opened.bank().judged() if each.verdict.revision == 2]
    low, high = said.interval
    assert rows_of(page, "candidates") == [
        [
            f"{small_run.STOVE} {small_run.REJECTED.id}, when: heat",
            "rejected",
            "needs a lower bound above 0; has -0.500",
            f"{said.difference:.3f} [{low:.3f}, {high:.3f}]",
            f"{said.bound:.3f}",
            str(said.pairs),
        ]
    ]
    page = client.get("/runs/first/candidates?rev=3").text
    assert "names an entry that is not there" in page
    assert re.search(r"rejected candidates is <a [^>]*rev=2", page)
    assert text_of(client.get("/runs/first/candidates?rev=1").text, "total") == "0 rejected, 1 admitted"
    assert "No candidate" in client.get("/runs/first/candidates?rev=0").text


def test_the_overview_names_commands_of_this_run_and_revision_that_the_command_line_knows(first, capsys):
    small_run.build(first.root, "second")
    page = asked(first).get("/runs/first?rev=2").text
    listed = re.findall(r"<dt><code>(.*?)</code></dt>", page.split('id="commands"')[1].split("</details>")[0])
    commands = [shlex.split(html.unescape(each)) for each in listed]
    assert ["coevo", "explain", "first@2", "--since", "1"] in commands
    assert ["coevo", "compare", "first@2", "second", "--evaluate"] in commands
    assert ["coevo", "fsck", "first"] in commands
    assert ["coevo", "rollback", "first", "--to", "0"] in commands  # the best besides this one
    for _, *command in commands:
        names = command[: 2 if command[0] == "bank" else 1]
        with pytest.raises(SystemExit) as stopped:
            main([*names, "--help"])
        assert stopped.value.code == 0, names
        said = capsys.readouterr().out
        assert all(each in said for each in command if each.startswith("--")), command
    assert "--since" not in asked(first).get("/runs/first?rev=0").text


@pytest.mark.parametrize(("text", "scope"), [("heat mug", "lotus"), ("mug", None), ("nothing of it", "lotus")])
def test_a_search_ranks_lessons_as_retrieval_does(first, text, scope):
    page = asked(first).get("/runs/first/bank", params={"rev": 3, "q": text, "scope": scope or ""}).text
    with reading("first@3", first) as opened:
        settings = opened.config.bank
        retrieval = settings.retrieval.model_copy(update={"scoped": settings.retrieval.scoped and scope is not None})
        bank = settings.model_copy(update={"retrieval": retrieval})
        hits = index_of(opened.bank(), opened.config.model_copy(update={"bank": bank})).search(text, scope or "")
    wanted = " ".join(f"{hit.entry.id} {hit.entry.strategy} score {hit.score:.3f}" for hit in hits)
    found = next(each for each in parsed(page).all("ol") if each.attributes.get("id") == "retrieval")
    assert " ".join(" ".join(item.text.split()) for item in found.all("li")) == (wanted or "no lesson")
    assert '<option value="lotus"' in page  # a scope can be chosen though no entry has all of the words
    command = shlex.join(["coevo", "bank", "search", "first@3", text, *(["--scope", scope] if scope else [])])
    assert f"<code>{command}</code>" in html.unescape(page)


def test_a_search_that_needs_a_model_names_the_command(tmp_path):
    indexed(small_run.build(tmp_path, overrides=["bank.retrieval={type: utility}"]))
    page = asked(Workspace(tmp_path)).get("/runs/first/bank?q=it%27s+a+mug&scope=lotus&rev=3").text
    assert "coevo bank search first@3 'it'\"'\"'s a mug' --scope lotus" in html.unescape(text_of(page, "retrieval"))


@pytest.fixture
def panels(tmp_path):
    """A run with two lessons, both unread in training; the second panel has its own notes, one with an id of ours."""
    run = DrawnRun(tmp_path, 0)
    played = []
    for panel, seen in zip(PANELS, ((ONE,), (OTHER, GIVEN)), strict=True):
        for number, each in enumerate(small_run.episodes(1, seen)):
            kind = ("heat", "cool")[number % 2]
            task = replace(each.task, kind=kind, data={"n": panel}, split="held-out")
            moved = replace(each, id=f"1/evaluate-{panel}/{number}", task=task)
            said = ("", "") if each.success else ("wrong end", "not followed")
            played.append(HeldOutEpisode(panel, moved, *said))
    run.staged["held_out"] = run.paths.staging / "held_out"
    write_held_out(played, run.staged["held_out"])
    run.state = {"outcomes": dict.fromkeys(PANELS, "1100"), "panels": dict.fromkeys(PANELS, "p" * 64)}
    run.metrics = {f"agent/success/{panel}": 0.5 for panel in PANELS}
    run.commit(BankChange(entries=(ONE, OTHER)), small_run.episodes(1))
    run.staged, run.state, run.metrics = {}, {}, {}
    run.commit(BankChange(), small_run.episodes(2))
    indexed(run.paths)
    return asked(run.workspace)


def test_never_read_in_training_says_what_held_out_episodes_read_of_this_bank(panels):
    page = panels.get("/runs/drawn/bank?unread=1&rev=2").text
    said = "2 entries that no training episode has read; held-out episodes have read 1 of them"
    assert text_of(page, "total") == said
    rows = [[" ".join(cell.text.split()) for cell in row.all("td")] for row in parsed(page).all("tr")]
    assert sorted(row[-1] for row in rows if row) == ["0", "4"]


def test_a_card_leads_to_the_episodes_that_read_it_and_says_which_bank(panels):
    page = panels.get(f"/runs/drawn/lessons/{ONE.id}?rev=2").text
    assert rows_of(page, "readers") == [["seen-houses", "1", "4", "2"]]
    (link,) = re.findall(r'href="([^"]*set=seen-houses[^"]*)"', page)
    shown = panels.get("/" + html.unescape(link).lstrip("./")).text
    assert text_of(shown, "total").startswith("4 episodes")
    assert text_of(page, "held-out") == "4"
    ((name, *figures),) = rows_of(panels.get(f"/runs/drawn/lessons/{OTHER.id}?rev=2").text, "readers")
    assert name == "other-facts this panel has a bank of its own, with a lesson of the same text"
    assert figures == ["1", "4", "2"]


@pytest.mark.parametrize(
    ("text", "found"), [(ONE.id, 4), (ONE.id[:5], 4), ("SAFE lotus", 4), ("bin", 0), ("tulip", None), ("%", None)]
)
def test_the_lesson_of_episodes_is_named_by_words_or_id(panels, text, found):
    page = panels.get("/runs/drawn/episodes", params={"rev": 1, "set": "seen-houses", "lesson": text}).text
    assert text_of(page, "total").startswith(f"{found or 0} episodes")
    assert ('id="unnamed"' in page) == (found is None)
    assert ('id="named"' in page) == (found is not None)
    if found is None:
        assert f"bank?rev=1&q={text.replace('%', '%25')}" in html.unescape(page)


def test_success_is_summed_over_panels_and_by_kind_and_labels_are_explained(panels):
    page = panels.get("/runs/drawn/episodes?rev=1&set=held-out").text
    assert rows_of(page, "by-set") == [
        ["training", "4", "2", "0.500"],
        ["seen-houses", "4", "2", "0.500"],
        ["other-facts", "4", "2", "0.500"],
        ["held-out, all panels", "8", "4", "0.500"],
    ]
    assert rows_of(page, "by-kind") == [["cool", "4", "2", "0.500"], ["heat", "4", "2", "0.500"]]
    assert text_of(page, "total") == "8 episodes of 4 tasks, 4 solved"
    assert "<dt>not followed</dt><dd>all that the task needs stood in prompts, and the episode failed" in page
    failed = panels.get("/runs/drawn/episodes?rev=1&set=held-out&outcome=failed").text
    assert rows_of(failed, "by-kind") == rows_of(page, "by-kind")  # not of the chosen episodes alone
    overview = rows_of(panels.get("/runs/drawn?rev=1").text, "panels")
    assert sorted(row[0] for row in overview) == sorted(PANELS)
    assert all(re.fullmatch(r"0\.500 \[0\.\d{3}, 0\.\d{3}\]", row[1]) and row[2] == "4" for row in overview)


def test_counts_are_counts_and_small_numbers_are_not_zeros(tmp_path):
    run = DrawnRun(tmp_path, 0)
    run.metrics = {"policy/update/tokens": 1098.0, "policy/update/mismatch_mean": 2.5e-7, "policy/update/kl": 0.25}
    run.commit(BankChange(), [])
    indexed(run.paths)
    page = asked(run.workspace).get("/runs/drawn").text
    for name, value in (("tokens", "1098"), ("mismatch of engine and trainer, mean", "2.5e-07"), ("entries", "0")):
        assert f'<th scope="row">{name}</th><td data-label="here">{value}</td>' in page


@pytest.mark.parametrize("hostile", [HOSTILE_TEXT, FRESH_TEXT], ids=["known", "fresh"])
def test_hostile_text_of_a_proposal_is_inert(tmp_path, hostile):
    run, lesson, _ = hostile_run(tmp_path, hostile)
    judged = (small_run.judged(2, (lesson,), (0.0, 0.0, -1.0)),)
    new = replace(lesson, id="e" * 12)
    write_proposal(Pending(2, Decision(entries=(new,), judged=judged), (lesson.id,)), run.paths.staging)
    run.staged, run.state = {FOLDER: run.paths.staging / FOLDER}, {"waiting": True}
    played = [replace(each, id=name) for each, name in zip(small_run.episodes(2), lesson.sources, strict=False)]
    run.commit(BankChange(), [replace(each, task=replace(each.task, instruction=hostile)) for each in played])
    indexed(run.paths)
    page = asked(run.workspace).get("/runs/hostile/approval").text
    elements = list(parsed(page).all())
    assert {each.tag for each in elements} & {"iframe", "svg", "img", "style", "object", "math", "textarea"} == set()
    assert not any(name.startswith("on") or name == "style" for each in elements for name in each.attributes)
    assert all(each.attributes.get("src") for each in elements if each.tag == "script")
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x7f-\x9f]", page)
    ((*_, reason, _, _, _),) = rows_of(page, "replay")
    assert reason == "needs a lower bound above 0; has -0.583"
    ((change, text, *_),) = rows_of(page, "changes")
    assert (change, "⟨U+" in text or "U+" in page) == ("new", True)
