"""The end of a run in words."""

from pathlib import Path

import pytest
from support.small_run import RECIPE, build

from coevo.flows.console.options import workspace_option
from coevo.flows.console.run_overview import in_plain_words, look_further, most_used, outcome, summarise
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace
from coevo.memory.stats import Stats
from coevo.records.entry import Entry


def entry(name):
    return Entry(name, "lotus mug in safe", "mug", "go safe", "lotus mug", "lotus", "train", ("1/r/t/0",), 1, 1)


def manifest(recipe, **metrics):
    config = {"recipe": recipe, "evaluation": {"panels": ["new"]}}
    return Manifest.of({"config": config, "metrics": metrics}, {})


def test_the_panels_played_last_are_shown_beside_the_blind_expert():
    history = [
        manifest("mine", **{"agent/success/new": 0.25, "agent/expert/new": 0.3}),
        manifest("mine", **{"agent/success/new": 0.75}),
    ]
    rows = outcome(history, {"new": "new tasks", "never": "not played"})
    assert tuple(rows[0].values()) == ("new", 0.25, 0.75, "new tasks")
    assert tuple(rows[1].values())[1:3] == (None, 0.3)
    assert "expert" in " ".join(map(str, rows[1].values()))


def test_figures_of_other_runs_do_not_stand_beside_a_run_s_own():
    (row,) = outcome([manifest(RECIPE, **{"agent/success/new": 1.0})], {"new": ""})
    assert row["held-out success"] == "new"


def test_the_entries_of_most_successes_come_first():
    stats = {name: Stats(name, retrievals=9, successes=n) for name, n in (("a", 1), ("b", 5), ("d", 0))}
    used = [found.id for found, _ in most_used([entry(name) for name in "acdbe"], stats | {"e": Stats("e")}, 4)]
    assert used == ["b", "a", "d"]  # "c" and "e" were never used


def test_an_entry_in_plain_words():
    assert in_plain_words(entry("a")) == "when mug in lotus: lotus mug in safe; for example go safe"


@pytest.mark.parametrize(("last", "to"), [(0, 0), (1, 0), (40, 20)])
def test_only_commands_that_can_be_given_are_proposed(last, to):
    assert f"rollback r --to {to}" in look_further("r", ended(last), range(last + 1))


def test_going_back_is_proposed_to_a_revision_that_is_kept():
    assert "rollback r --to 12" in look_further("r", ended(40), [0, 12, 39, 40])


def ended(last, bank=True, update=True, iteration=None):
    config = {"bank": {} if bank else None, "update": {} if update else None}
    return Manifest.of({"revision": last, "iteration": iteration or last, "config": config}, {})


def test_a_run_that_waits_for_a_person_is_not_sent_on():
    waiting = Manifest.of(ended(40).state | {"waiting": True}, {})
    assert look_further("r", waiting, range(41)) == (
        "approve --list r", "approve r@40", "approve r@40 --reject", "log r",
    )  # fmt: skip


def test_commands_for_another_workspace_name_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert workspace_option(Workspace(Path("workspace"))) == ""
    assert workspace_option(Workspace(tmp_path / "my runs")) == f" --workspace '{tmp_path}/my runs'"


def test_a_run_that_went_back_is_lengthened_by_what_it_has_done():
    assert "resume r --iterations 84" in look_further("r", ended(44, iteration=42), range(45))


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ({"bank": False}, {"bank log r"}),
        ({"update": False}, set()),
        ({"bank": False, "update": False}, {"bank log r", "resume r --iterations 80"}),
    ],
)
def test_a_run_is_not_sent_to_what_it_lacks(parts, missing):
    kept = range(41)
    assert set(look_further("r", ended(40), kept)) - set(look_further("r", ended(40, **parts), kept)) == missing


def test_a_finished_run_is_summed_up(tmp_path, capsys):
    workspace = Workspace(tmp_path)
    build(tmp_path)
    summarise(workspace, workspace.existing("first"))
    shown = capsys.readouterr().out
    assert "seen-houses" in shown
    assert "lotus heat with microwave" in shown
    assert "coevo resume first" in shown
