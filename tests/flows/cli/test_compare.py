"""Comparing runs: what differs, and paired differences at the end and at equal expense, worked out by hand."""

import csv
import io
import json
import math
from itertools import cycle

import pytest
from support import small_run
from support.small_run import RECIPE

from coevo.flows import api
from coevo.flows.cli import compare
from coevo.flows.evaluation.comparison import Comparison, differences_of
from coevo.flows.evaluation.comparison_side import Evaluated, Side
from coevo.tasks.cost import KINDS, Spent


def test_comparison_names_what_differs_and_pairs_the_tasks(coevo):
    found = json.loads(coevo("compare", "first", "other", "--json").out)
    assert found["settings"] == {
        "seed": {"first@3": 0, "other@3": 4},
        "bank.retrieval.k": {"first@3": 4, "other@3": 1},
    }
    assert found["runs"][1] == {"run": "other@3", "evaluated": 3, "success": {"seen-houses": 0.5}, "spent": {
        "episodes": 12, "tokens": 2400, "seconds": 4.5,
    }}  # fmt: skip
    difference = found["differences"][0]
    assert (difference["equal"], difference["budget"]) == ("end", None)
    # 1111 against 1010: gains 0, -1, 0, -1, whose standard deviation is sqrt(1/3).
    half = 3.1824463 * math.sqrt(1 / 3) / 2  # t with 3 degrees
    assert (difference["run"], difference["against"], difference["tasks"]) == ("other@3", "first@3", 4)
    assert [difference[key] for key in ("difference", "low", "high")] == pytest.approx([-0.5, -1, -0.5 + half])


UNEVALUATED = (
    ("first@1", "first@2"), ("first@2", "first@1"), ("other@1", "first@2"), ("first", "bankless@1"),
    ("first@kept", "first"), ("first@4", "first@3"), ("first@3", "first@4"), ("other@4", "other"),
    ("first@5", "other@3"), ("branch@1", "first"), ("other@1", "first@1"),
)  # fmt: skip
"""Revisions between two evaluations, by number and tag, made by a command, by a rollback, and in a branch."""


def test_a_revision_that_was_not_evaluated_is_refused_with_the_command(coevo, refused, copied):
    coevo("tag", "first@1", "kept")
    coevo("branch", "first@1", "branch")
    coevo("bank", "retire", "first", small_run.MICROWAVE.id, "--reason", "wrong")
    coevo("rollback", "first", "--to", 1)
    coevo("bank", "retire", "other", small_run.MUG.id, "--reason", "wrong")
    for (one, other), form in zip(UNEVALUATED, cycle(([], ["--json"], ["--csv"], ["--latex"])), strict=False):
        said = refused("compare", one, other, *form)
        assert f" was not evaluated, so it has no figures: `coevo compare {one} {other} --evaluate" in said


def test_figures_stand_beside_the_revisions_that_they_were_measured_at(coevo):
    found = json.loads(coevo("compare", "first@0", "first@2", "--json").out)
    assert [(side["run"], side["evaluated"]) for side in found["runs"]] == [("first@0", 0), ("first@2", 2)]
    assert [side["success"] for side in found["runs"]] == [{"seen-houses": 0.0}, {"seen-houses": 0.5}]
    assert found["differences"][0]["difference"] == 0.5
    assert "No setting differs." in coevo("compare", "first@0", "first@2").out.splitlines()


def test_a_run_is_compared_at_its_last_evaluated_revision(coevo, copied):
    coevo("bank", "retire", "other", small_run.MUG.id, "--reason", "wrong")
    said = coevo("compare", "other@3", "other").out
    assert "+0.000" not in said
    assert said.splitlines()[-1].startswith(
        "The figures of other@4 are those of revision 3, before a command changed its bank; to see its success: coevo "
    )
    found = json.loads(coevo("compare", "first", "other", "--json").out)
    assert [side["run"] for side in found["runs"]] == ["first@3", "other@3"]
    small_run.build(copied, "late", outcomes=("0000", None, "1100", None))
    found = json.loads(coevo("compare", "first", "late", "--json").out)
    assert (found["runs"][1]["run"], found["runs"][1]["success"]) == ("late@2", {"seen-houses": 0.5})
    last = coevo("compare", "first", "late").out.splitlines()[-1]
    assert last.startswith("The figures of late@3 are those of revision 2, its last evaluation; to see its success: ")


def test_other_tasks_are_not_paired(coevo):
    found = json.loads(coevo("compare", "first", "bankless", "--json").out)
    assert found["differences"][0]["low"] is None
    assert "without an interval" in coevo("compare", "first", "bankless").out


def test_at_equal_expense_the_dearer_run_counts_where_it_had_spent_as_much(coevo):
    found = json.loads(coevo("compare", "first", "other", "--json").out)
    equal = {each["equal"]: each for each in found["differences"]}
    assert list(equal) == ["end", "episodes", "seconds"]
    for kind, budget in (("episodes", 12), ("seconds", 4.5)):
        assert (equal[kind]["budget"], equal[kind]["revision"], equal[kind]["difference"]) == (budget, 3, -0.5)


def test_what_was_evaluated_far_from_equal_expense_is_not_compared_there(coevo):
    # At 200 tokens an episode `other` had 0, 1600 and 2400 behind it when it was evaluated, `first` 1200 at its end.
    found = json.loads(coevo("compare", "first", "other", "--json").out)
    assert "tokens" not in {each["equal"] for each in found["differences"]}
    # Where neither side has learned, nothing is equal but the start.
    started = json.loads(coevo("compare", "first@0", "other", "--json").out)["differences"]
    assert {each["equal"] for each in started} == {"end"}


@pytest.mark.parametrize(
    ("ours", "theirs", "chosen"),
    [
        ((3008,), (4928,), None),
        ((100,), (100,), (100, 100)),
        ((100,), (105,), (100, 105)),  # 5 of 105 are 4.8 %
        ((100,), (106,), None),
        ((105,), (100,), (105, 100)),
        ((50, 100), (51, 200), (50, 51)),
        ((50, 100), (50, 97, 104), (100, 104)),
        ((50, 100), (98, 99, 100.5), (100, 100.5)),
        ((0, 90), (0, 200), None),
        ((0,), (0,), None),
        ((1e6,), (1.04e6, 2e6), (1e6, 1.04e6)),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_equal_expense_is_equal_within_five_per_cent(ours, theirs, chosen, kind):
    def side(name, costs):
        rows = tuple(
            Evaluated(n, "p", "x", 0.5, None, "10", Spent(**{kind: cost})) for n, cost in enumerate(costs)
        )  # fmt: skip
        return Side(name, f"{name}@9", {}, rows, ())

    found = [each for each in differences_of(side("one", ours), side("first", theirs)) if each.equal == kind]
    assert [(each.spent, each.against_spent) for each in found] == ([] if chosen is None else [chosen])
    assert [each.budget for each in found] == ([] if chosen is None else [max(chosen)])


def test_panels_that_are_nowhere_near_equal_expense_are_named(capsys):
    spent = [Spent(0, 0, 0.0), Spent(60, 600, 6.0), Spent(100, 1000, 10.0)]
    ends = [Evaluated(n, "late", "x", 0.5, None, "10", spent[n]) for n in (0, 2)]
    always = [Evaluated(n, "always", "y", 0.5, None, "10", spent[n]) for n in (0, 1, 2)]
    dear = Side("dear", "dear@2", {}, (*ends, *always), (ends[-1], always[-1]))
    panels = {"late": "x", "always": "y"}
    cheap = tuple(Evaluated(1, panel, digest, 0.0, None, "00", spent[1]) for panel, digest in panels.items())
    frugal = Side("frugal", "frugal@1", {}, cheap, cheap)
    found = Comparison((dear, frugal), tuple(differences_of(frugal, dear)))
    assert {(each.equal, each.panel) for each in found.differences if each.panel == "late"} == {("end", "late")}
    assert {each.equal for each in found.differences if each.panel == "always"} == {"end", *KINDS}
    assert found.apart() == ["late"]
    compare._print_gaps(found, "")
    assert "Not compared at equal expense on late: the run that spent more was not evaluated" in capsys.readouterr().out


@pytest.mark.parametrize("references", [("first", "apart"), ("apart", "first")])
def test_revisions_that_cost_as_much_are_named_with_the_command_that_compares_them(coevo, tmp_path, references):
    """``first`` had 8 episodes behind it when it was last evaluated, ``apart`` 12."""
    small_run.build(tmp_path, outcomes=("0000", "1100", "1100", None))
    small_run.build(tmp_path, "apart", outcomes=("0000", None, None, "1111"))
    here = ("--workspace", tmp_path)
    lines = coevo("compare", *references, *here).out.splitlines()
    command = f"coevo compare {references[0]}@3 {references[1]}@3 --evaluate --workspace {tmp_path}"
    assert f"Revisions that spent as much: {command}" in lines


def test_an_evaluation_that_is_not_needed_is_said(coevo):
    told = coevo("compare", "first", "other", "--evaluate", "--json")
    assert told.err == "--evaluate: first@3, other@3 were evaluated before, so nothing was played\n"
    assert json.loads(told.out) == json.loads(coevo("compare", "first", "other", "--json").out)


def test_a_revision_is_not_compared_with_itself(coevo):
    found = json.loads(coevo("compare", "first@2", "first@3", "--json").out)
    assert [each["equal"] for each in found["differences"]] == ["end"]
    assert "Not compared at equal" not in coevo("compare", "first@2", "first@3").out


def test_a_rollback_to_a_revision_that_was_not_evaluated_says_how_to_evaluate_it(coevo, copied):
    coevo("rollback", "first", "--to", 1)
    said = coevo("compare", "other", "first").out
    assert said.splitlines()[-1] == (
        f"first@4 was not evaluated; to see its success: coevo evaluate first@4 --workspace {copied}"
    )
    assert "\n\n\n" not in said
    assert not said.endswith("\n\n")


def test_figures_from_before_a_change_by_a_command_are_named_as_such(coevo, copied):
    assert "changed its bank" not in coevo("compare", "other", "first").out
    coevo("bank", "retire", "first", small_run.MUG.id, "--reason", "wrong")
    said = coevo("compare", "other", "first").out.splitlines()[-1]
    assert said.startswith("The figures of first@4 are those of revision 3, before a command changed its bank; to see")


def test_what_was_not_counted_is_not_compared(coevo):
    found = json.loads(coevo("compare", "first", "bankless", "--json").out)
    assert [each["equal"] for each in found["differences"]] == ["end", "seconds"]
    assert "Not compared at equal tokens" in coevo("compare", "first", "bankless").out


def test_the_differences_as_csv(coevo):
    rows = list(csv.DictReader(io.StringIO(coevo("compare", "first", "other", "--csv").out)))
    documented = json.loads(coevo("compare", "first", "other", "--json").out)["differences"]
    assert [row["equal"] for row in rows] == [each["equal"] for each in documented]
    assert [float(row["low"]) for row in rows] == [each["low"] for each in documented]


def test_the_differences_as_latex(coevo):
    lines = coevo("compare", "first", "other", "--latex").out.splitlines()
    assert lines[0] == "% minus first@3, whose revisions and success are behind the stroke; 95 % over tasks, paired"
    assert r"\toprule" in lines
    assert r"at the end & seen-houses & other@3 & 3 / 3 & 0.500 / 1.000 & -0.500 & [-1.000, +0.419] & 4 \\" in lines


def test_frames_for_notebooks(small_workspace):
    frame = api.compare("first", "other", workspace=small_workspace)
    assert frame.set_index("equal")["difference"].to_dict() == {
        "end": -0.5, "episodes": -0.5, "seconds": -0.5,
    }  # fmt: skip
    curve = api.curves("first", "other@2", workspace=small_workspace)
    assert curve[["run", "revision", "success", "tokens"]].values.tolist() == [
        ["first@3", 0, 0.0, 0], ["first@3", 2, 0.5, 800], ["first@3", 3, 1.0, 1200],
        ["other@2", 0, 0.0, 0], ["other@2", 2, 0.25, 1600],
    ]  # fmt: skip


APART = {"cost/rollout/episodes": 4.0, "cost/rollout/tokens": 400.0, "cost/judging/episodes": 8.0}


def test_the_expense_of_each_part_is_reported_at_every_revision_compared(coevo, tmp_path, monkeypatch):
    rows = [metrics | (APART if revision else {}) for revision, metrics in enumerate(small_run.METRICS)]
    monkeypatch.setattr(small_run, "METRICS", rows)
    for name in ("one", "two"):
        small_run.build(tmp_path, name)
    found = json.loads(coevo("compare", "one@2", "two", "--json", "--workspace", tmp_path).out)
    told = {(row["run"], row["revision"], row["part"]): row for row in found["expenses"]}
    assert set(told) == {
        (run, revision, part)
        for run, revision in (("one@2", 2), ("two@3", 3), ("two@3", 2))
        for part in ("rollout", "judging", "other")
    }
    assert told["two@3", 3, "judging"] == {
        "run": "two@3", "revision": 3, "part": "judging", "episodes": 24, "questions": None, "tokens": None,
        "seconds": None, "budgets": ["episodes", "tokens", "seconds"],
    }  # fmt: skip
    assert (told["one@2", 2, "rollout"]["tokens"], told["one@2", 2, "rollout"]["seconds"]) == (800, 4.5)
    lines = coevo("compare", "one@2", "two", "--workspace", tmp_path).out.splitlines()
    head = next(line for line in lines if line.startswith("run ") and "in equal" in line)
    assert " ".join(head.split()) == "run up to revision part episodes questions tokens seconds in equal"
    assert "two@3 3 judging 24 episodes, tokens, seconds" in [" ".join(line.split()) for line in lines]


def test_a_run_that_did_not_count_its_parts_has_seconds_alone(coevo):
    found = json.loads(coevo("compare", "first", "other", "--json").out)["expenses"]
    assert {row["part"] for row in found} == {"rollout", "other"}
    assert {(row["episodes"], row["tokens"]) for row in found} == {(None, None)}


def test_a_run_is_compared_with_a_recipe_by_its_settings(coevo):
    assert json.loads(coevo("compare", "other", RECIPE, "--json").out) == {
        "bank.retrieval.k": {"other@3": 1, RECIPE: 4},
        "seed": {"other@3": 4, RECIPE: 0},
    }
    assert coevo("compare", "other", RECIPE).out.splitlines()[0].split() == ["setting", "other@3", RECIPE]
    assert coevo("compare", "first", RECIPE).out == f"first has the settings of {RECIPE}.\n"
    without = json.loads(coevo("compare", "bankless", RECIPE, "--json").out)
    assert without["bank"] == {"bankless@3": None} and without["bank.every"] == {RECIPE: 1}
    assert "No run 'homerules-coevo'" in coevo("compare", "first", "homerules-coevo").err
