"""The report says what manifests, bank and episodes say, escapes what it quotes, and needs nothing but itself."""

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace

import pytest
from support import small_run
from support.html_page import read
from support.kept import history
from support.small_run import EDITED, HEAT, MICROWAVE, MUG, PANEL

from coevo.flows.history.revision_reference import reading
from coevo.flows.upkeep.branch import branch
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.records.intervals import of_share


@pytest.fixture(scope="module")
def placed(small_workspace, tmp_path_factory):
    """Where the report of ``first`` is."""
    return tmp_path_factory.mktemp("reports") / "first.html"


@pytest.fixture
def page(coevo, placed):
    if not placed.exists():
        assert coevo("report", "first", "--output", placed).code == 0
    return read(placed)


def drawn(page, figure, name):
    curve = page.one("svg", id=figure).one("g", "curve", data_name=name)
    return [float(mark.attributes["data-value"]) for mark in curve.all("circle")]


def test_the_table_of_revisions_is_that_of_the_manifests(page, small_workspace):
    rows = page.one("table", id="table-revisions").rows()
    for row, manifest in zip(rows, history(small_workspace, "first"), strict=True):
        metrics = manifest.state["metrics"]
        assert (row["revision"], row["iteration"]) == (manifest.revision, manifest.iteration)
        assert row["agent/success/train"] == metrics.get("agent/success/train", "")
        assert row[f"agent/success/{PANEL}"] == metrics.get(f"agent/success/{PANEL}", "")
        assert row["seconds"] == manifest.observed["metrics"]["cost/seconds/wall"]
    assert [row["bank"] for row in rows] == [0, 2, 2, 2]
    assert [row["tokens so far"] for row in rows] == [0, 400, 800, 1200]
    assert [row["what"] for row in rows] == ["start, evaluated", "2 admitted", "1 rejected, evaluated", "evaluated"]


def test_the_head_names_recipe_seed_and_evaluation_sets(page, small_workspace):
    said = page.one("dl", "origin")
    told = {name.text: value.text for name, value in zip(said.all("dt"), said.all("dd"), strict=True)}
    config = history(small_workspace, "first")[-1].state["config"]
    assert (told["recipe"], told["seed"], told["evaluation sets"]) == (config["recipe"], str(config["seed"]), PANEL)
    assert re.fullmatch("[0-9a-f]{12}", told["commit"])


def test_success_at_start_and_end_has_its_interval(page):
    found = {row["panel"]: row for row in page.one("table", id="table-ends").rows()}
    row = found[PANEL]
    assert (row["first"], row["start"], row["last"], row["end"]) == (0, 0.0, 3, 1.0)
    low, high = (of_share(0.0, 4), of_share(1.0, 4))
    assert row["start interval"] == f"[{low.low:.3f}, {low.high:.3f}]"
    assert row["end interval"] == f"[{high.low:.3f}, {high.high:.3f}]"
    assert row["what it is"]


def test_success_on_a_panel_is_drawn_with_its_interval(page):
    curve = page.one("svg", id="figure-success").one("g", "curve", data_name=PANEL)
    bars = [
        (float(bar.attributes["data-low"]), float(bar.attributes["data-high"])) for bar in curve.all("path", "whisker")
    ]
    assert bars == [(found.low, found.high) for found in (of_share(share, 4) for share in (0.0, 0.5, 1.0))]


def test_kinds_of_tasks_and_reasons_are_those_of_the_stored_episodes(coevo, tmp_path):
    assert coevo("report", "first@2", "--output", tmp_path / "x.html").code == 0
    found = read(tmp_path / "x.html")
    rows = json.loads(coevo("episodes", "first@2", "--json").out)
    kinds = {row["kind of task"]: row for row in found.one("table", id="table-kinds").rows()}
    for kind, row in kinds.items():
        wins = [each["success"] for each in rows if each["kind"] == kind]
        assert (row["episodes"], row["success"]) == (len(wins), sum(wins) / len(wins))
    failed = [(each["reason"], each["lessons"]) for each in rows if each["reason"]]
    reasons = found.one("table", id="table-reasons").rows()
    assert {(row["reason"], row["lessons"]): row["episodes"] for row in reasons} == {
        pair: failed.count(pair) for pair in failed
    }


def test_settings_that_differ_from_the_recipe_are_named(coevo, tmp_path):
    assert coevo("report", "other", "--output", tmp_path / "other.html").code == 0
    rows = {row["setting"]: row for row in read(tmp_path / "other.html").one("table", id="table-changed").rows()}
    differing = json.loads(coevo("compare", "other", small_run.RECIPE, "--json").out)
    assert "bank.retrieval.k" in rows
    assert set(rows) == set(differing)
    assert rows["bank.retrieval.k"]["value"] == "1"


def test_the_cost_of_each_part_has_its_budgets(page):
    row, rest = page.one("table", id="table-expenses").rows()
    assert (rest["part"], rest["seconds"], rest["in equal"]) == ("other", 2.0, "")
    assert (row["part"], row["seconds"], row["in equal"]) == ("rollout", 6.0, "episodes, tokens, seconds")
    assert row["episodes"] == ""


def test_the_curves_are_those_of_the_manifests(page, small_workspace):
    told = [manifest.state["metrics"] for manifest in history(small_workspace, "first")]
    for name in ("train", PANEL):
        assert drawn(page, "figure-success", name) == [
            m[f"agent/success/{name}"] for m in told if f"agent/success/{name}" in m
        ]


def test_internalization_is_drawn_where_it_was_measured(page, coevo, tmp_path, monkeypatch):
    assert list(page.all("svg", id="figure-internalization")) == []
    folder = f"bank/internalization/{PANEL}"
    measured = [
        {f"{folder}/top1_minus_none": n / 4, f"{folder}/top1_minus_none_low_over_tasks": n / 8} for n in range(4)
    ]
    rows = [metrics | more for metrics, more in zip(small_run.METRICS, measured, strict=True)]
    monkeypatch.setattr(small_run, "METRICS", rows)
    small_run.build(tmp_path)
    assert coevo("report", "first", "--output", tmp_path / "x.html", "--workspace", tmp_path).code == 0
    found = read(tmp_path / "x.html")
    assert drawn(found, "figure-internalization", f"{PANEL}, minus none") == [0.0, 0.25, 0.5, 0.75]
    assert [
        curve.attributes["data-name"] for curve in found.one("svg", id="figure-internalization").all("g", "curve")
    ] == [f"{PANEL}, minus none"]


def test_verdicts_have_the_intervals_of_the_bank(page, coevo):
    told = [row for row in json.loads(coevo("bank", "log", "first", "--json").out) if "difference" in row]
    marks = list(page.all("g", "verdict"))
    assert [mark.has("admitted") for mark in marks] == [row["admitted"] > 0 for row in told]
    for mark, row in zip(marks, told, strict=True):
        assert [float(mark.attributes[f"data-{name}"]) for name in ("difference", "low", "high")] == [
            row[name] for name in ("difference", "low", "high")
        ]
    assert len(page.one("table", id="table-operations").rows()) == 2


def test_entries_are_counted_as_the_bank_counts_them(page, coevo):
    counted = {row["id"]: row for row in json.loads(coevo("bank", "show", "first", "--json").out)}
    rows = {row["id"]: row for row in page.one("table", id="table-entries").rows()}
    assert {name: (row["retrievals"], row["successes"]) for name, row in rows.items()} == {
        name: (row["retrievals"], row["successes"]) for name, row in counted.items()
    }
    assert (rows[MUG.id]["entry"], rows[MUG.id]["edited"]) == (EDITED.strategy, 3)
    life = page.one("g", "life", data_entry=MUG.id)
    assert len(list(life.all("path", "edit"))) == 1
    assert list(life.all("path", "retired")) == []


def test_retrievals_are_distributed_as_the_bank_counts_them(page, coevo):
    counted = [row["retrievals"] for row in json.loads(coevo("bank", "show", "first", "--json").out)]
    rows = page.one("table", id="table-retrievals").rows()
    assert sum(row["entries"] for row in rows) == len(counted)
    bins = {}
    for row in rows:
        first, *last = map(int, row["retrievals"].split(" to "))
        bins[range(first, (last or [first])[0] + 1)] = row["entries"]
    assert {each: sum(count in each for count in counted) for each in bins} == bins


def test_it_stops_at_the_revision_named(coevo, tmp_path):
    assert coevo("report", "first@1", "--output", tmp_path / "one.html").code == 0
    found = read(tmp_path / "one.html")
    assert len(found.one("table", id="table-revisions").rows()) == 2
    assert found.one("h1").text == "first@1"


def test_nothing_is_loaded_from_anywhere_and_only_its_own_script_runs(page, placed):
    assert re.findall(r"https?:|//[a-z]|@import|url\(", placed.read_text()) == []
    linked = [element.attributes.get(name) for element in page.all() for name in ("src", "href", "srcset", "data")]
    assert {link[0] for link in linked if link} == {"#"}
    allowed = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert allowed.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        digest = b64encode(hashlib.sha256(page.one(tag).text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in allowed


def test_an_association_is_called_no_more_than_that(page, placed):
    text = placed.read_text(encoding="utf-8")
    assert "harmful" not in text.lower()
    assert "useful" not in text.lower()
    assert "Lowest success when shown" in text
    assert "association and no effect" in text
    assert "95 % interval over tasks" in text


def test_success_is_that_of_the_revision_named(coevo, copied):
    assert "at revision" not in _headline(coevo, copied)
    coevo("bank", "retire", "first", small_run.MUG.id, "--reason", "wrong")
    assert "0.000 to 1.000 at revision 3" in _headline(coevo, copied)


def _headline(coevo, copied):
    assert coevo("report", "first", "--output", copied / "report.html").code == 0
    return (copied / "report.html").read_text(encoding="utf-8")


def test_the_report_links_its_sections(page):
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link.attributes["href"].removeprefix("#") in ids
    for figure in page.all("svg"):
        titles = figure.attributes["aria-labelledby"].split()
        assert figure.attributes["role"] == "img"
        assert all(figure.one(id=title).text for title in titles)
    assert all(list(table.all("caption")) for table in page.all("table"))
    assert page.one("html").attributes["lang"] == "en"


HOSTILE = '</title><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}" onload="x\u202etxt.exe\x1b[2J'


def test_hostile_text_is_quoted_and_nothing_more(coevo, tmp_path, monkeypatch):
    mug = replace(MUG, strategy=HOSTILE, condition=HOSTILE, example=HOSTILE, scope=HOSTILE)
    changes = (BankChange(), BankChange(entries=(mug,), judged=(small_run.judged(1, (mug,), (1.0, 0.0)),)))
    monkeypatch.setattr(small_run, "CHANGES", (*changes, BankChange(), BankChange(operations=(
        replace(small_run.OPERATIONS[0], line=HOSTILE, reason=HOSTILE),
    ))))  # fmt: skip
    played = small_run.episodes(2)[:2] + small_run.episodes(2, (mug,))[2:]
    monkeypatch.setattr(small_run, "PLAYED", ([], small_run.episodes(1), played, small_run.episodes(3, (mug,))))
    small_run.build(tmp_path)
    assert coevo("report", "first", "--output", tmp_path / "x.html", "--workspace", tmp_path).code == 0
    found = read(tmp_path / "x.html")
    assert [element.tag for element in found.all() if element.tag in ("script", "img")] == ["script"]
    assert not [name for element in found.all() for name in element.attributes if name.startswith("on")]
    shown = HOSTILE.replace("\u202e", " ").replace("\x1b", " ")
    story = found.one("details", "story", data_entry=mug.id)
    assert story.one("summary").one("bdi").text == shown
    assert found.one("table", id="table-entries").rows()[0]["entry"] == shown
    assert not {"\u202e", "\x1b"} & set((tmp_path / "x.html").read_text())
    # Two episodes of the revision without it were solved, neither of the two with it.
    assert float(story.one("span", "gain").attributes["data-value"]) == -2.0
    assert next(item.text for item in story.all("li")).endswith("solved with go safe, put counter")


def test_a_rollback_and_branches_appear_as_what_they_are(coevo, copied, tmp_path):
    workspace = Workspace(copied)
    with reading("first@2", workspace) as source:
        branch(source, "mine", ["iterations=9"], workspace)
    paths = workspace.existing("first")
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        lineage.rollback(1, Bank(paths.bank))
    for run in ("first", "mine"):
        assert coevo("report", run, "--output", tmp_path / f"{run}.html").code == 0
    first, mine = (read(tmp_path / f"{run}.html").one("svg", id="figure-lineage") for run in ("first", "mine"))
    kinds = {node.attributes["data-revision"]: node.attributes["class"] for node in first.all("circle", "node")}
    assert kinds == {"0": "node led", "1": "node led", "2": "node aside", "3": "node aside", "4": "node led"}
    back = first.one("path", "rollback")
    assert (back.attributes["data-from"], back.attributes["data-to"]) == ("1", "4")
    assert [label.text for label in first.all("text", "label")] == ["back to 1", "mine"]
    assert [edge.attributes["data-from"] for edge in first.all("path", "branch")] == ["2"]
    assert list(mine.all("path", "rollback")) == []
    assert mine.one("path", "branch").attributes["data-to"] == "3"
    assert [label.text for label in mine.all("text", "label")] == ["from first@2"]


def test_a_run_without_a_bank_has_a_report(coevo, tmp_path):
    result = json.loads(coevo("report", "bankless", "--output", tmp_path / "b.html", "--json").out)
    assert result == {
        "run": "bankless@3",
        "file": str(tmp_path / "b.html"),
        "bytes": (tmp_path / "b.html").stat().st_size,
    }


def test_it_is_written_beside_a_writer_into_the_workspace_and_replaced(coevo, copied):
    with writer_lock(Workspace(copied).existing("first")):
        for run in ("first@1", "first"):
            result = coevo("report", run)
            assert (result.code, result.err) == (0, "")
    assert read(copied / "reports" / "first.html").one("h1").text == "first@3"
    assert [path.name for path in (copied / "reports").iterdir()] == ["first.html"]


def test_the_most_useful_entry_comes_first(page):
    # Both lessons were seen by all four episodes of their revisions: nothing tells them from the others.
    assert list(page.all("details", "story")) == []
    assert {HEAT, EDITED.strategy} == {row["entry"] for row in page.one("table", id="table-entries").rows()}
    assert MICROWAVE.id in {life.attributes["data-entry"] for life in page.all("g", "life")}


def test_a_report_that_cannot_be_written_names_its_file_and_the_option(coevo, copied):
    (copied / "reports").write_text("no folder")
    said = coevo("report", "first")
    assert said.code == 2
    assert f"{copied / 'reports' / 'first.html'} cannot be written (" in said.err
    assert said.err.endswith("name another file with --output FILE\n")
    assert "None" not in said.err
