"""``coevo bank retrieval`` on the small run: two entries, both written from its only task."""

import json
from dataclasses import replace

import pytest
from support import small_run

BY_WORDS = ("random", "tfidf", "bm25")


@pytest.fixture
def measured(coevo):
    return lambda *arguments: json.loads(coevo("bank", "retrieval", *arguments, "--json").out)


def rows(found):
    return {(row["retrieval"], row["pool"]): row for row in found["rows"] if row["retrieval"] in BY_WORDS}


def test_a_task_finds_its_entries_in_pools_and_in_the_whole_bank(measured):
    found = measured("first", "--pools", "2,1,2,3")
    assert (found["run"], found["entries"], found["tasks"], found["scoped"]) == ("first@3", 2, 1, True)
    assert set(rows(found)) == {(name, pool) for name in BY_WORDS for pool in (1, 2, None)}
    whole = rows(found)["tfidf", None]
    assert whole["queries"] == 1
    assert whole["hit_at_1"]["mean"] == whole["hit_at_3"]["mean"] == whole["mrr"]["mean"] == 1.0
    assert whole["precision"]["mean"] == 1.0
    # Wilson's interval of one success in one trial.
    assert whole["mrr"]["low"] == pytest.approx(1 / (1 + 1.96**2))
    assert found == measured("first", "--pools", "1,2,3")


def test_the_table_names_what_it_shows(coevo):
    shown = coevo("bank", "retrieval", "first").out
    assert [line.split()[:3] for line in shown.splitlines()[1:4]] == [[name, "all", "1"] for name in BY_WORDS]
    assert "1.000 [0.207, 1.000]" in shown
    assert "1 training tasks have entries. A query searches its task's pool in the bank, of 2." in shown
    assert "searches the whole bank, of 2." in coevo("bank", "retrieval", "first", "--unscoped").out


def test_nothing_to_measure_is_one_line(coevo, measured):
    assert coevo("bank", "retrieval", "first@0").out == "The bank of first@0 is empty.\n"
    assert measured("first@0")["rows"] == []


def test_tasks_of_an_evaluation_panel_are_no_queries(coevo, tmp_path, monkeypatch):
    held_out = replace(small_run.TASK, split="seen-houses")
    played = [[replace(episode, task=held_out) for episode in each] for each in small_run.PLAYED]
    monkeypatch.setattr(small_run, "PLAYED", played)
    small_run.build(tmp_path)
    shown = coevo("bank", "retrieval", "first", "--workspace", tmp_path).out
    assert shown == "No entry of first@3 comes from a training episode that is kept: there is no query.\n"


def test_a_retrieval_that_is_not_installed_is_named(coevo, monkeypatch):
    from coevo.memory.retrieval import encoder

    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    encoder.encoder_of.cache_clear()
    shown = coevo("bank", "retrieval", "first").out
    assert "embedding is not measured: encoder.model=all-MiniLM-L6-v2: sentence embeddings are not installed" in shown
    assert "tfidf+embedding is not measured" in shown
    assert shown.count("not measured") == 3


@pytest.mark.parametrize("pools", ["", "5,", "0", "-1", "5;6", "x", "9" * 5000, "١"])
def test_sizes_of_pools_are_numbers(refused, pools):
    assert "write numbers of entries, such as --pools 5,20,100" in refused(
        "bank", "retrieval", "first", "--pools", pools
    )


def test_a_run_without_a_bank_is_refused(refused):
    assert "has no bank" in refused("bank", "retrieval", "bankless")
