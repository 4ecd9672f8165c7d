"""Effect of one lesson, and the split of a change into policy, bank and the tasks that were drawn."""

import json
from dataclasses import replace

import pytest
from support.packages import untrained
from support.small_run import EDITED, MICROWAVE, MUG, build

from coevo.flows.cli.app import main
from coevo.flows.evaluation import attribution
from coevo.flows.evaluation.attribution import EntryEffect, entry_effect, explain
from coevo.flows.evaluation.panel_evaluation import Evaluation, EvaluationRequest
from coevo.lineage.workspace import Workspace
from coevo.records.intervals import Interval
from coevo.records.task import Panel
from coevo.utilities.errors import CoevoError

FEW = EvaluationRequest(tasks=4)


@pytest.fixture
def workspace(tmp_path):
    """A workspace with the small run and its real, untrained policy."""
    build(tmp_path / "workspace", "first", ["rollout.max_turns=2"], policy=untrained(tmp_path / "untrained"))
    return Workspace(tmp_path / "workspace")


def scripted(monkeypatch, solved):
    """Evaluations whose successes are looked up by policy, bank and left out entries."""
    from support.batches import episode, turn

    calls, iterations = [], []

    def evaluate(reference, request, workspace):
        calls.append((reference, request.bank, request.without))
        iterations.append(request.iteration)
        marks = solved[reference, request.bank, request.without]
        read = () if request.without else (MUG.id,)
        played = [
            episode(number, int(mark == "1"), (turn(retrieved=read if number < 3 else ()),))
            for number, mark in enumerate(marks)
        ]
        return Evaluation(Panel("seen-houses", "1", tuple(each.task for each in played)), played, {})

    monkeypatch.setattr(attribution, "evaluate_revision", evaluate)
    return calls, iterations


def test_a_lesson_is_paired_over_all_tasks_and_over_its_readers(workspace, monkeypatch):
    scripted(monkeypatch, {("first@3", "own", ()): "11010", ("first@3", "own", (MUG.id,)): "10010"})
    found = entry_effect("first", MUG.id[:6], FEW, workspace)
    assert (found.entry.id, found.tasks, found.readers, found.success, found.without) == (MUG.id, 5, 3, 0.6, 0.4)
    # One of five tasks gains 1: the standard error is .2, the quantile of Student's t with 4 degrees of freedom 2.776.
    ends = (found.difference.mean, found.difference.low, found.difference.high)
    assert ends == pytest.approx((0.2, 0.2 - 2.776 * 0.2, 0.2 + 2.776 * 0.2), abs=1e-3)
    assert found.among_readers.mean == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("own", "without", "said"),
    [
        ("11110", "00110", "among 3 readers: +0.667 [-0.768, +1.000]"),
        ("11", "01", "among 2 readers: +0.500 [-1.000, +1.000]"),
    ],
)
def test_few_readers_have_an_interval_of_possible_differences(workspace, monkeypatch, capsys, own, without, said):
    scripted(monkeypatch, {("first@3", "own", ()): own, ("first@3", "own", (MUG.id,)): without})
    with pytest.raises(SystemExit):
        main(["bank", "test", "first", EDITED.strategy, "--workspace", str(workspace.root)])
    assert capsys.readouterr().out.splitlines()[-1] == said


@pytest.mark.parametrize(("readers", "said"), [(0, "among 0 readers: nothing to compare"), (1, "among 1 reader: +1, ")])
def test_the_gain_of_a_single_reader_is_told_without_an_interval(monkeypatch, capsys, readers, said):
    gain = Interval(readers / 4, 0, 1)
    found = EntryEffect("first@3", EDITED, "seen-houses", 4, readers, 1.0, 0.75, gain, None)
    monkeypatch.setattr(attribution, "entry_effect", lambda *given: found)
    monkeypatch.setattr("coevo.flows.console.trust_prompt.trust_revision", lambda *given, **asked: None)
    with pytest.raises(SystemExit):
        main(["bank", "test", "first", EDITED.id])
    assert capsys.readouterr().out.splitlines()[-1].startswith(said)


def test_effects_of_policy_and_bank_are_the_whole_change(workspace, monkeypatch):
    solved = {
        ("first@2", "own", ()): "0000000000",
        ("first@2", "first@3", ()): "1100000000",
        ("first@3", "first@2", ()): "1111000000",
        ("first@3", "own", ()): "1111111100",
    }
    calls, iterations = scripted(monkeypatch, solved)
    found = explain("first@3", FEW, workspace)
    assert sorted(calls) == sorted(solved)
    assert iterations == [3] * 4  # where a world drifts, all sides play that of the later revision
    effects = {cause.what: cause.effect.mean for cause in found.causes if cause.of == "seen-houses"}
    # policy: (.4 - 0 + .8 - .2) / 2, bank: (.2 - 0 + .8 - .4) / 2
    assert effects == {"policy": pytest.approx(0.5), "bank": pytest.approx(0.3)}
    assert sum(effects.values()) == pytest.approx(found.held_out[1] - found.held_out[0])
    assert [abs(cause.effect.mean) for cause in found.causes] == [*sorted(effects.values(), reverse=True), 0.0]


def test_a_change_over_several_revisions_is_that_between_its_ends(workspace, monkeypatch):
    keys = [("first@1", "own"), ("first@1", "first@3"), ("first@3", "first@1"), ("first@3", "own")]
    calls, _ = scripted(
        monkeypatch, {(*key, ()): marks for key, marks in zip(keys, ("00", "10", "01", "11"), strict=True)}
    )
    found = explain("first@3", FEW, workspace, since=1)
    assert sorted(calls) == sorted((*key, ()) for key in keys)
    assert (found.before, found.after, found.held_out) == ("first@1", "first@3", (0.0, 1.0))


def test_without_a_change_nothing_is_beyond_noise(workspace, monkeypatch):
    """Simulation: in 400 explanations of outcomes without any effect at most 5 % of the effects seem to be one."""
    import random

    beyond = 0
    for number in range(200):
        draw = random.Random(number)
        marks = ["".join(draw.choice("01") for _ in range(40)) for _ in range(4)]
        keys = [("first@2", "own"), ("first@2", "first@3"), ("first@3", "first@2"), ("first@3", "own")]
        sides = {(*key, ()): mark for key, mark in zip(keys, marks, strict=True)}
        made = [scripted_evaluation(sides[(*key, ())]) for key in keys]
        causes = attribution._held_out_causes([made[:2], made[2:]], ("first@2", "first@3"), "seen-houses", True)
        beyond += sum(bool(cause.beyond_noise) for cause in causes)
    assert beyond <= 0.05 * 400 + 3 * (0.05 * 0.95 * 400) ** 0.5


def scripted_evaluation(marks):
    from support.batches import episode

    played = [episode(number, int(mark == "1")) for number, mark in enumerate(marks)]
    return Evaluation(Panel("seen-houses", "1", tuple(each.task for each in played)), played, {})


def test_the_kinds_that_were_drawn_explain_a_change_of_training_success(monkeypatch):
    """Kinds easy (1.0) and hard (0.0): half and half, then three in four easy."""
    shares = iter([{"easy": (0.5, 1.0), "hard": (0.5, 0.0)}, {"easy": (0.75, 1.0), "hard": (0.25, 0.0)}])
    monkeypatch.setattr(attribution, "_shares", lambda opened, manifest: next(shares))

    class Opened:
        name = "first@3"

    (cause,) = attribution._drawn(Opened(), None, None)
    assert (cause.what, cause.effect.mean, cause.beyond_noise) == ("tasks", pytest.approx(0.25), None)


def test_a_real_policy_and_bank_are_played_on_equal_draws(workspace, capsys):
    for line in (["bank", "test", "first", MICROWAVE.id, "--tasks", "4"], ["explain", "first@2", "--tasks", "4"]):
        with pytest.raises(SystemExit) as stopped:
            main([*line, "--json", "--workspace", str(workspace.root)])
        assert stopped.value.code == 0
    documents = capsys.readouterr().out
    tested, explained = (json.loads(each) for each in documents.replace("}\n{", "}\n\0{").split("\0"))
    assert tested["difference"]["mean"] == tested["success"] - tested["without"]
    assert explained["before"] == "first@1" and {cause["what"] for cause in explained["causes"]} >= {"policy", "bank"}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda ws: explain("first@0", FEW, ws), "first@0 is the first revision: explain a later one"),
        (lambda ws: explain("first@2", replace(FEW, panel="training"), ws), "trained on different tasks"),
        (lambda ws: explain("first@2", FEW, ws, 2), "revision 2 did not lead to first@2"),
        (lambda ws: explain("first@2", FEW, ws, 3), "revision 3 did not lead to first@2"),
        (lambda ws: entry_effect("first", "nothing", FEW, ws), "No entry 'nothing'."),
        (lambda ws: entry_effect("first@0", MUG.id, FEW, ws), "No entry"),
    ],
)
def test_what_cannot_be_told_is_one_line(workspace, call, says):
    with pytest.raises(CoevoError, match=says) as refused:
        call(workspace)
    assert "\n" not in str(refused.value)
