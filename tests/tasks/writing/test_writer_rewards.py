"""Rewards of answers: right predictions, and gains of candidates in replays, worked out by hand."""

from dataclasses import replace

import pytest
from support.batches import episode, turn
from support.entries import entry

from coevo.memory.bank.change import Judged
from coevo.memory.evidence.reflections import MALFORMED, Reflected, parse
from coevo.memory.writers.writer import WriterAnswer
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.records.entry import Verdict
from coevo.records.writing import Credit, Drawn
from coevo.tasks.writing.writer_rewards import gains_of, predicted, replayed, unmatched


def drawn(number):
    return Drawn((1, 2), (number,))


def reflected(number, success, said):
    """Reflection on an episode with this outcome: a right or wrong prediction, or None for one without a form."""
    reflection = MALFORMED if said is None else parse(f"Subtask: a | done\nSuccess: {said}")
    return Reflected(replace(episode(0, number, (turn(),)), success=success), None, reflection, drawn(number))


TOLD = [reflected(0, True, "yes"), reflected(1, False, "yes"), reflected(2, False, "no"), reflected(3, False, None)]


def test_a_right_prediction_earns_one_and_a_malformed_reflection_nothing():
    found = predicted(TOLD, balance=False)
    assert [(each.drawn, each.credits, each.weight) for each in found] == [
        (drawn(number), (Credit(0, 1, reward),), 1.0) for number, reward in enumerate((1.0, 0.0, 1.0, 0.0))
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


def test_the_tokens_of_a_lesson_earn_its_gain():
    tokenizer = word_tokenizer(("#", "1", "2", "a", "b", "c", "?"))
    judged = [verdict("a", 0.5), verdict("b", -0.25), verdict("c", 0.5, pairs=0)]

    def answer(text, *lessons):
        ids = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
        return WriterAnswer(Drawn((1,), (*ids, tokenizer.eos_token_id)), tuple((name, name) for name in lessons))

    writer_answers = [
        answer("? # 1 a # 2 b", "a", "b"),
        answer("? # 1 known # 2 b", "known", "b"),
        answer("?"),
        answer("? # 1 c", "c"),
        answer("? # 1 a # 2 a", "a", "a"),
    ]
    found = replayed(writer_answers, gains_of(judged), tokenizer)
    earned = [(Credit(1, 4, 0.5), Credit(4, 7, -0.25)), (Credit(4, 7, -0.25),), (Credit(1, 4, 0.5),)]
    assert [(each.drawn, each.credits) for each in found] == [
        (writer_answers[place].drawn, each) for place, each in zip((0, 1, 4), earned, strict=True)
    ]


def test_a_refused_lesson_earns_nothing_even_where_it_holds_an_accepted_one():
    tokenizer = word_tokenizer(("#", "1", "2", "a", "b"))
    ids = tuple(tokenizer("# 1 a # 2 b a", add_special_tokens=False)["input_ids"])
    (found,) = replayed([WriterAnswer(Drawn((1,), ids), (("a", "a"), ("b a", "")))], {"a": 0.5}, tokenizer)
    assert found.credits == (Credit(0, 3, 0.5),)


def test_a_lesson_earns_what_its_last_replay_measured():
    tokenizer = word_tokenizer(("#", "1", "a"))
    ids = tuple(tokenizer("# 1 a", add_special_tokens=False)["input_ids"])
    judged = [verdict("a", 0.5), verdict("a", 0.125), verdict("a", 0.0, pairs=0)]
    (found,) = replayed([WriterAnswer(Drawn((1,), ids), (("a", "a"),))], gains_of(judged), tokenizer)
    assert found.credits == (Credit(0, 3, 0.125),)


def test_a_lesson_whose_tokens_are_not_found_earns_nothing_and_is_counted():
    tokenizer = word_tokenizer(("#", "1", "a"))
    ids = tuple(tokenizer("# 1 a # 1 b", add_special_tokens=False)["input_ids"])  # of b, the tokenizer has no token
    writer_answers = [WriterAnswer(Drawn((1,), ids), (("a", "a"), ("b", "b"), ("known", "known")))]
    gains = {"a": 0.5, "b": 0.5}
    found = replayed(writer_answers, gains, tokenizer)
    assert [each.credits for each in found] == [(Credit(0, 3, 0.5),)]
    assert unmatched(writer_answers, gains, found) == 1
    assert unmatched(writer_answers[:1], {"a": 0.5}, found) == 0
