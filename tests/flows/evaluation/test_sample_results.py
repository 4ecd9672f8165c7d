"""Figures over tasks, and the file that keeps episodes."""

import json
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.flows.evaluation.sample_results import EpisodeKey, EpisodeSummary, ResultFile, figures_of, pass_at
from coevo.records.intervals import of_share
from coevo.utilities.errors import CoevoError

QUESTION = {"target": "first@3", "settings": {"seed": 1}}


def summary(mark):
    return EpisodeSummary(mark == "1", float(mark == "1"), 5, mark == "-")


def ended(**outcomes):
    """Episodes by bank: a row of marks per task, ``1``, ``0`` or ``-`` for a lost one."""
    return {
        EpisodeKey(bank, f"t{number}", replica): summary(mark)
        for bank, tasks in outcomes.items()
        for number, marks in enumerate(tasks)
        for replica, mark in enumerate(marks)
    }


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_is_the_mean_over_all_draws_of_k(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    expected = fmean(any(drawn) for drawn in combinations(outcomes, k))
    assert pass_at(len(outcomes), sum(outcomes), k) == pytest.approx(expected)


def test_figures_of_worked_values():
    found = figures_of(ended(own=["11", "10", "0-"], none=["10", "00", "--"]), ["own", "none"], ["t0", "t1", "t2"], 2)
    own, none = found["figures"]["own"], found["figures"]["none"]
    # Means of the tasks are 1, .5, 0; at k = 2 the third has one episode only.
    assert own["avg"]["mean"] == pytest.approx(0.5)
    assert (own["pass"]["1"]["mean"], own["pass"]["2"]["mean"]) == (pytest.approx(0.5), 1.0)
    assert (own["avg"]["low"], own["avg"]["high"]) == (of_share(0.5, 3).low, of_share(0.5, 3).high)
    assert (own["lost"], none["lost"], own["reward"], own["tokens"]) == (1, 2, pytest.approx(3 / 5), 25)
    (difference,) = found["differences"]
    assert (difference["bank"], difference["against"], difference["tasks"]) == ("own", "none", 2)
    assert difference["difference"] == pytest.approx(0.5)
    assert difference["low"] < 0.5 < difference["high"]


def test_without_any_episode_there_is_no_figure():
    (own,) = figures_of(ended(own=["--"]), ["own"], ["t0"], 2)["figures"].values()
    assert (own["avg"], own["pass"], own["reward"], own["lost"]) == (None, {"1": None, "2": None}, None, 2)


def row(task, **more):
    return {"bank": "own", "task": task, "replica": 0, "success": True, "reward": 1.0, "tokens": 3, "lost": ""} | more


def keep(path, *tasks, resume=False):
    with ResultFile(path, QUESTION).opened(resume) as results:
        for task in tasks:
            results.add(row(task, text=f"{task} \ud800 ü\u2028"))
        return dict(results.ended)


@given(st.integers(0, 10**6))
def test_of_a_file_cut_anywhere_the_whole_lines_stay(tmp_path_factory, place):
    path = tmp_path_factory.mktemp("cut") / "results.jsonl"
    keep(path, "a", "b")
    partial = path.with_name("results.jsonl.partial")
    content = partial.read_bytes()
    partial.write_bytes(content[: place % (len(content) + 1)])
    lines = partial.read_bytes().count(b"\n")
    assert [key.task for key in keep(path, resume=True)] == ["a", "b"][: max(0, lines - 1)]
    keep(path, *["a", "b"][max(0, lines - 1) :], resume=True)
    assert partial.read_bytes() == content


def test_the_end_has_the_order_that_is_asked_for(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    with ResultFile(path, QUESTION).opened(resume=False) as results:
        for task in "cab":
            results.add(row(task))
        results.finish(sorted(results.ended), {"figures": {"x": 1}})
    assert [json.loads(line)["task"] for line in path.read_text().splitlines()] == ["a", "b", "c"]
    assert json.loads(path.with_suffix(".json").read_text()) == {**QUESTION, "figures": {"x": 1}}
    assert sorted(each.name for each in path.parent.iterdir()) == ["results.json", "results.jsonl"]


@pytest.mark.parametrize(
    "line", ["no JSON", "[]", "{}", '{"bank": "own", "task": "a", "replica": "x", "success": 1}', "[" * 10**5]
)
def test_a_damaged_line_is_refused_in_one_line(tmp_path, line):
    path = tmp_path / "results.jsonl"
    keep(path, "a")
    with path.with_name("results.jsonl.partial").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(CoevoError, match="remove the file, and begin anew") as refused:
        keep(path, resume=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("beside", [None, "no JSON", '{"target": "other@1"}'])
def test_a_file_that_holds_something_else_is_refused_and_stays(tmp_path, beside):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"mine": 1}\nunfinished')
    if beside is not None:
        path.with_suffix(".json").write_text(beside)
    with pytest.raises(CoevoError):
        keep(path, resume=True)
    assert path.read_text() == '{"mine": 1}\nunfinished'


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("beside", ["no JSON", "[]", '{"target": "other@1"}', '{"target": "first@3"}', "[" * 10**5])
def test_figures_do_not_replace_an_unrelated_file(tmp_path, beside, resume):
    summary = tmp_path / "notes.json"
    summary.write_text(beside)
    with pytest.raises(CoevoError, match=r"notes.json is already there.* name another file") as refused:
        keep(tmp_path / "notes.jsonl", "a", resume=resume)
    assert "\n" not in str(refused.value)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.json"] and summary.read_text() == beside


def test_figures_of_the_same_evaluation_are_written_again(tmp_path):
    """As after a kill between the two files."""
    path = tmp_path / "results.jsonl"
    keep(path, "a")
    path.with_suffix(".json").write_text(json.dumps({**QUESTION, "figures": {}}))
    with ResultFile(path, QUESTION).opened(resume=True) as results:
        results.finish(sorted(results.ended), {"figures": {"x": 1}})
    assert json.loads(path.with_suffix(".json").read_text())["figures"] == {"x": 1}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("field", ["reward", "turns"])
def test_a_number_that_is_none_is_not_written(tmp_path, number, field):
    path = tmp_path / "results.jsonl"
    keep(path, "a")
    before = path.with_name("results.jsonl.partial").read_bytes()
    with ResultFile(path, QUESTION).opened(resume=True) as results:
        with pytest.raises(CoevoError, match="task b: the environment gave a number that is not finite") as refused:
            results.add(row("b", **{field: [{"reward": number}] if field == "turns" else number}))
        assert len(results.ended) == 1
    assert "\n" not in str(refused.value)
    assert path.with_name("results.jsonl.partial").read_bytes() == before
