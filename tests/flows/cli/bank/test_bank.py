"""Commands of the bank on the small run, whose every entry and episode is known."""

import json
import re
from dataclasses import replace

import pytest
from support import small_run
from support.html_page import read
from support.small_run import EDITED, HEAT, MICROWAVE, MUG, REJECTED, SAFE, source

GAINS = {2: (0.5, 0.0, 0.5, 0.0), 3: (1.0, 0.0, 1.0, 1.0)}
"""Paired gains of an entry in two measurements."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A workspace whose run left an entry out of replays in revisions 2 and 3. Nothing may change it."""
    root = tmp_path_factory.mktemp("measured")
    left_out = {revision: (small_run.judged(revision, (MUG,), gains),) for revision, gains in GAINS.items()}
    changes = [replace(change, left_out=left_out.get(n, ())) for n, change in enumerate(small_run.CHANGES)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_run, "CHANGES", changes)
        small_run.build(root)
    return root


@pytest.fixture
def bank(coevo):
    return lambda *arguments: json.loads(coevo("bank", *arguments, "--json").out)


def test_log_tells_admitted_from_rejected_with_replay_and_noise(bank):
    admitted, rejected, *_ = bank("log", "first")
    assert [admitted[key] for key in ("revision", "candidates", "admitted", "rejected", "bank")] == [1, 2, 2, 0, 2]
    assert admitted["difference"] == 0.5
    # Gains 1, 0, 1, 0: standard error sqrt(1/3) / 2.
    assert admitted["high"] - admitted["difference"] == pytest.approx(3.182446 * (1 / 3) ** 0.5 / 2)
    assert not admitted["significant"]
    assert [rejected[key] for key in ("revision", "candidates", "admitted", "rejected", "bank")] == [2, 1, 0, 1, 2]
    assert rejected["entries"] == [{"id": REJECTED.id, "strategy": REJECTED.strategy}]


def test_log_is_chosen_by_revision_and_outcome_and_names_the_lessons(coevo, bank):
    rejected = [row for row in bank("log", "first", "--rejected") if "difference" in row]
    assert [row["entries"][0]["id"] for row in rejected] == [REJECTED.id]
    assert [row["reason"] for row in rejected] == ["needs a lower bound above 0; has -0.500"]
    assert [row["revision"] for row in bank("log", "first", "--revision", "1")] == [1]
    assert bank("log", "first", "--revision", "1", "--rejected") == []
    assert REJECTED.strategy in coevo("bank", "log", "first", "--rejected").out
    assert coevo("bank", "log", "first", "--revision", "1", "--rejected").out.startswith("No candidates")


def test_log_shows_the_bound_of_a_run_that_asks_for_confidence(coevo, tmp_path):
    small_run.build(tmp_path, overrides=["bank.admission.confidence=0.75"])
    rows = json.loads(coevo("bank", "log", "first", "--json", "--workspace", tmp_path).out)
    admitted, rejected = (row for row in rows if "difference" in row)
    assert (admitted["confidence"], admitted["bound"], rejected["bound"]) == (0.75, 0.25, -0.5)
    assert (admitted["reason"], rejected["reason"]) == (None, "needs a lower bound above 0; has -0.500")
    text = coevo("bank", "log", "first", "--rejected", "--workspace", tmp_path).out
    assert "needs a lower bound above 0; has -0.500" in text and "significant" not in text
    for shown in (("log", "first"), ("why", "first", MUG.id)):
        assert re.search(r"0\.750 +0\.250", coevo("bank", *shown, "--workspace", tmp_path).out)
    # Without it, there is none.
    small_run.build(tmp_path, "mean", overrides=["bank.admission.confidence=null"])
    plain = coevo("bank", "log", "mean", "--json", "--workspace", tmp_path).out
    assert [row["bound"] for row in json.loads(plain)[:2]] == [None, None]
    assert [row["reason"] for row in json.loads(plain)[:2]] == [None, "needs a difference above 0; has -0.250"]
    assert "bound" not in coevo("bank", "log", "mean", "--workspace", tmp_path).out


def test_the_share_that_saw_a_candidate_on_trial_is_shown_beside_its_verdict(coevo, tmp_path, monkeypatch):
    trial = small_run.judged(2, (REJECTED,), (0.0, 0.0, -1.0, 0.0))
    trial = replace(trial, verdict=replace(trial.verdict, seen_share=0.375))
    monkeypatch.setattr(
        small_run, "CHANGES", [replace(c, judged=(trial,)) if n == 2 else c for n, c in enumerate(small_run.CHANGES)]
    )
    small_run.build(tmp_path)
    replayed, tried, *_ = json.loads(coevo("bank", "log", "first", "--json", "--workspace", tmp_path).out)
    assert (replayed["seen_share"], tried["seen_share"]) == (None, 0.375)
    for shown in (("log", "first"), ("why", "first", REJECTED.id)):
        text = coevo("bank", *shown, "--workspace", tmp_path).out
        assert "seen share" in text
        assert re.search(r"0\.375", text)
    assert coevo("report", "first", "--output", tmp_path / "x.html", "--workspace", tmp_path).code == 0
    rows = read(tmp_path / "x.html").one("table", id="table-verdicts").rows()
    assert [row["seen share"] for row in rows] == [0.375, ""]
    # A run that replays has no such column.
    assert "seen share" not in coevo("bank", "log", "first").out


@pytest.mark.parametrize(
    ("overrides", "writer"),
    [
        ((), "quote-contrast"),
        (["bank.writer={type: model-contrast, model: {type: frozen, path: a/b}}"], "model-contrast (frozen model)"),
    ],
)
def test_the_origin_of_an_entry_names_its_writer_and_is_found_by_the_lesson(coevo, tmp_path, overrides, writer):
    small_run.build(tmp_path, overrides=overrides)
    story = json.loads(coevo("bank", "why", "first", HEAT, "--json", "--workspace", tmp_path).out)
    assert (story["entry"]["id"], story["writer"]) == (MICROWAVE.id, writer)
    assert f"written by {writer}" in coevo("bank", "why", "first", HEAT, "--workspace", tmp_path).out.splitlines()


def test_log_tells_what_became_of_operations_and_ends_at_the_revision_named(bank, coevo):
    applied, rejected = bank("log", "first")[2:]
    assert applied == {
        "operation": f'EDIT("{MUG.id}", "lotus mug in drawer")', "id": "00000003/000000", "revision": 3,
        "scope": "lotus", "outcome": "applied", "reason": "", "entries": [MUG.id],
    }  # fmt: skip
    assert (rejected["outcome"], rejected["reason"]) == ("rejected", "names an entry that is not there")
    shown = coevo("bank", "log", "first").out
    assert "names an entry that is not there" in shown
    assert "candidates" in shown
    assert [row["revision"] for row in bank("log", "first@1")] == [1]


def test_show_ends_with_the_distribution_of_retrievals(bank, coevo):
    counts = sorted(row["retrievals"] for row in bank("show", "first"))
    said = " ".join(coevo("bank", "show", "first").out.split())
    of_all = f"{counts[0]} to {counts[-1]}, median {sum(counts) / 2:g}; {counts.count(0)} of 2 entries never."
    assert said.endswith(f"Retrievals per entry: {of_all}")
    assert "Retrievals per entry" not in coevo("bank", "show", "first@0").out


def test_show_is_the_bank_of_the_revision_and_counts_retrievals_up_to_it(bank):
    assert bank("show", "first@0") == []
    assert {row["strategy"] for row in bank("show", "first@2")} == {SAFE, HEAT}
    assert {row["strategy"] for row in bank("show", "first")} == {EDITED.strategy, HEAT}

    def uses(revision):
        return {row["id"]: (row["retrievals"], row["successes"]) for row in bank("show", f"first@{revision}")}

    assert uses(2) == {MUG.id: (4, 2), MICROWAVE.id: (0, 0)}
    assert uses(3) == {MUG.id: (8, 4), MICROWAVE.id: (4, 2)}


def test_show_has_the_latest_credit_of_each_entry_that_was_measured(bank, coevo, measured):
    rows = {row["id"]: row for row in bank("show", "first", "--workspace", measured)}
    mug = rows[MUG.id]
    # Gains 1, 0, 1, 1: standard deviation 1/2.
    half = 3.1824463 * 0.5 / 2  # t(3) at 0.975
    assert [mug[name] for name in ("credit", "credit_low", "credit_high")] == pytest.approx(
        [0.75, 0.75 - half, 0.75 + half]
    )
    assert mug["credit_pairs"] == 4
    assert rows[MICROWAVE.id]["credit"] is None
    assert bank("show", "first@2", "--workspace", measured)[1]["credit"] == 0.25
    assert "credit low" in coevo("bank", "show", "first", "--workspace", measured).out
    assert "credit" not in coevo("bank", "show", "first").out


def test_measurements_are_no_verdicts_on_candidates(bank, coevo, measured):
    assert [row["revision"] for row in bank("log", "first", "--workspace", measured) if "difference" in row] == [1, 2]
    story = bank("why", "first", MUG.id, "--workspace", measured)
    assert [verdict["revision"] for verdict in story["verdicts"]] == [1]
    assert [(row["revision"], row["credit"], row["stays"]) for row in story["credits"]] == [
        (2, 0.25, True), (3, 0.75, True),
    ]  # fmt: skip
    assert "Left out" in coevo("bank", "why", "first", MUG.id, "--workspace", measured).out
    assert "Left out" not in coevo("bank", "why", "first", MUG.id).out


def test_the_report_has_the_credit_beside_the_association(coevo, measured, tmp_path):
    assert coevo("report", "first", "--output", tmp_path / "x.html", "--workspace", measured).code == 0
    rows = {row["id"]: row for row in read(tmp_path / "x.html").one("table", id="table-entries").rows()}
    assert (rows[MUG.id]["credit"], rows[MUG.id]["credit pairs"]) == (0.75, 4)
    assert rows[MICROWAVE.id]["credit"] == ""


def test_search_uses_the_retrieval_settings_of_the_run_and_keeps_to_a_scope(bank):
    assert [hit["id"] for hit in bank("search", "first", "heat mug")] == [MICROWAVE.id, MUG.id]
    assert [hit["id"] for hit in bank("search", "other", "heat mug")] == [MICROWAVE.id]
    assert bank("search", "first", "heat mug", "--scope", "lotus")
    assert bank("search", "first", "heat mug", "--scope", "willow") == []


@pytest.mark.parametrize(
    ("scope", "query", "said"),
    [
        ("lotsu", "heat mug", "first@3: the bank has no lesson of scope 'lotsu'. Did you mean 'lotus'?\n"),
        ("Lotus", "heat mug", "Did you mean 'lotus'?\n"),
        ("lotus ", "heat mug", "Did you mean 'lotus'?\n"),
        ("willow", "heat mug", "first@3: the bank has no lesson of scope 'willow'.\n"),
        ("", "heat mug", "first@3: no scope is given, and lessons belong to one, such as 'lotus'\n"),
        ("lotus", "zebra", "first@3: no lesson of scope 'lotus' matches the instruction or the observation\n"),
    ],
)
def test_a_search_that_finds_nothing_says_why(coevo, scope, query, said):
    assert coevo("bank", "search", "first", query, "--scope", scope).out.endswith(said)


def test_why_tells_the_whole_story_of_an_entry(bank):
    story = bank("why", "first", MUG.id)
    assert story["entry"]["strategy"] == EDITED.strategy
    assert story["admitted"]
    assert story["taught_by"][0] == {
        "episode": source(1, 0),
        "success": True,
        "instruction": "house lotus . task heat mug to counter",
        "actions": ["go safe", "put counter"],
    }
    assert [verdict["revision"] for verdict in story["verdicts"]] == [1]
    assert story["edits"] == [{"revision": 3, "before": SAFE}]
    assert [(row["operation"][:4], row["outcome"]) for row in story["operations"]] == [("EDIT", "applied")]
    ends = [(row["revision"], row["success"]) for row in story["retrievals"]]
    assert ends == [(2, True), (2, True), (2, False), (2, False), (3, True), (3, True), (3, False), (3, False)]


def test_why_at_an_old_revision_knows_nothing_of_later_ones(bank):
    story = bank("why", "first@2", MUG.id)
    assert (story["entry"]["strategy"], story["edits"]) == (SAFE, [])
    assert {row["revision"] for row in story["retrievals"]} == {2}


def test_why_prints_the_operations_on_an_entry_and_leaves_out_what_there_is_not(coevo):
    assert "EDIT(" in coevo("bank", "why", "first", MUG.id).out
    unedited = coevo("bank", "why", "first", MICROWAVE.id).out
    assert "Operations" not in unedited
    assert "Replay" in unedited


def test_why_knows_a_candidate_that_never_entered(bank, coevo):
    story = bank("why", "first", REJECTED.id)
    assert (story["admitted"], story["retrievals"]) == (False, [])
    assert "never entered" in coevo("bank", "why", "first", REJECTED.id).out


def test_diff_goes_either_way(bank):
    assert [(row["change"], row["id"]) for row in bank("diff", "first@0", "first@3")] == [
        ("added", entry.id) for entry in sorted((MUG, MICROWAVE), key=lambda entry: entry.id)
    ]
    (edited,) = bank("diff", "first@1", "first@3")
    assert (edited["change"], edited["strategy"], edited["was"]) == ("edited", EDITED.strategy, SAFE)
    assert {row["change"] for row in bank("diff", "first@3", "first@0")} == {"retired"}


def test_what_is_not_there_is_said(coevo):
    assert "empty" in coevo("bank", "show", "first@0").out
    assert "No candidates" in coevo("bank", "log", "first@0").out
    assert coevo("bank", "search", "first", "zebra").out == "Nothing in first@3 matches 'zebra'.\n"
    assert "same entries" in coevo("bank", "diff", "first@1", "first@2").out


def test_the_beginning_of_an_id_names_an_entry(bank):
    (shown,) = bank("show", "first", MUG.id[:6])
    assert shown["id"] == bank("why", "first", MUG.id[:6])["entry"]["id"] == MUG.id


def test_health_names_what_nobody_read_near_duplicates_and_contradictions(coevo, tmp_path, monkeypatch):
    text = "heat the mug with the {} before you put it down"
    helps, harms = (small_run.entry(text.format(tool), "heat mug", "go", 3) for tool in ("stove", "oven"))
    near = "look into each of the drawers of the kitchen before you leave"
    twins = [small_run.entry(each, "mug", "go", 3) for each in (near, f"{near} it")]
    judged = (small_run.judged(3, (helps,), (1.0, 0.0, 1.0)), small_run.judged(3, (harms,), (-1.0, 0.0, -1.0)))
    *before, last = small_run.CHANGES
    added = replace(last, entries=(*last.entries, helps, harms, *twins), judged=(*last.judged, *judged))
    monkeypatch.setattr(small_run, "CHANGES", [*before, added])
    small_run.build(tmp_path)
    told = json.loads(coevo("bank", "health", "first", "--json", "--workspace", tmp_path).out)
    assert {each.id for each in (helps, harms, *twins)} <= {*told["never_retrieved"]}
    assert [{*pair[:2]} for pair in told["contradictions"]] == [{helps.id, harms.id}]
    assert [{*pair[:2]} for pair in told["near_duplicates"]] == [{each.id for each in twins}]
    shown = coevo("bank", "health", "first", "--workspace", tmp_path).out
    assert re.search(rf"contradict +({helps.id}|{harms.id})", shown)
    assert f"{told['entries']} entries" in shown and "1 that contradict." in shown
