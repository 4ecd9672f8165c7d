"""Rewards of answers: right predictions, and gains of candidates in replays, worked out by hand."""

from dataclasses import replace

import pytest
from support.batches import episode, turn
from support.entries import entry

from coevo.memory.bank.change import Judged
from coevo.memory.evidence.reflections import MALFORMED, Reflected, parse
from coevo.memory.writers.base import Authored
from coevo.records.entry import Verdict
from coevo.records.writing import Drawn
from coevo.tasks.writing.rewards import predicted, replayed


def drawn(number):
    return Drawn((1, 2), (number,))


def reflected(number, success, said):
    """Reflection on an episode with this outcome: a right or wrong prediction, or None for one without a form."""
    reflection = MALFORMED if said is None else parse(f"Subtask: a | done\nSuccess: {said}")
    return Reflected(replace(episode(0, number, (turn(),)), success=success), None, reflection, drawn(number))


TOLD = [
    reflected(0, True, "yes"),
    reflected(1, False, "yes"),
    reflected(2, False, "no"),
    reflected(3, False, None),
]


def test_a_right_prediction_earns_one_and_a_malformed_reflection_nothing():
    found = predicted(TOLD, balance=False)
    assert [(each.drawn, each.reward, each.weight) for each in found] == [
        (drawn(number), reward, 1.0) for number, reward in enumerate((1.0, 0.0, 1.0, 0.0))
    ]


def test_balanced_outcomes_have_equal_weight_as_wholes():
    found = predicted(TOLD, balance=True)
    assert [each.weight for each in found] == pytest.approx([2.0, 2 / 3, 2 / 3, 2 / 3])
    assert [each.weight for each in predicted(TOLD[1:], balance=True)] == pytest.approx([1.0] * 3)


def test_reflections_of_others_train_nobody():
    assert predicted([replace(each, drawn=None) for each in TOLD], balance=True) == []


def verdict(name, difference, pairs=8):
    made = Verdict(1, (name,), difference > 0, 0.5, 0.5 - difference, difference, 0.1, pairs, 0.0)
    return Judged(made, (entry(name),))


def test_an_answer_earns_the_mean_gain_of_its_candidates():
    judged = [verdict("a", 0.5), verdict("b", -0.25), verdict("c", 0.125), verdict("d", 0.5, pairs=0)]
    authored = [
        Authored(drawn(0), ("a", "b")),
        Authored(drawn(1), ("c",)),
        Authored(drawn(2), ()),
        Authored(drawn(3), ("a", "unjudged")),
        Authored(drawn(4), ("d",)),
    ]
    found = replayed(authored, judged)
    assert [(each.drawn, each.reward) for each in found] == [(drawn(0), 0.125), (drawn(1), 0.125), (drawn(2), 0.0)]
