"""Vendi scores by closed forms, and cosines of texts by hand."""

from dataclasses import replace

import numpy as np
import pytest
from support.batches import episode, turn

from coevo.memory.retrieval.encoder import BUNDLED
from coevo.memory.vendi_score import cosines, diversity, trajectory, vendi, word_counts

GO, TAKE = turn(action="go", feedback="hall"), turn(action="take", feedback="pan")


@pytest.mark.parametrize(
    ("texts", "score"),
    [
        (["go safe"], 1),
        (["go safe"] * 5, 1),
        (["go", "take", "use", "put"], 4),
        (["go", "go", "take", "take"], 2),
        (["go safe", "SAFE, go!"], 1),
        # Shares 3/4 and 1/4: equal texts weigh by their number, exp(-(3/4) ln(3/4) - (1/4) ln(1/4)).
        (["go", "go", "go", "take"], 4 / 3**0.75),
        # Cosine 1/2, hence eigenvalues 3/4 and 1/4 again.
        (["go safe", "go fridge"], 4 / 3**0.75),
        (["", "..."], 1),
        (["", "go"], 2),
    ],
)
def test_scores_by_hand(texts, score):
    assert vendi(cosines(texts)) == pytest.approx(score, abs=1e-6)


def test_a_score_has_six_decimals():
    assert vendi(cosines(["go", "go", "go", "take"])) == 1.754765  # 4 / 3^(3/4) = 1.75476535...


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n", [2, 7, 40])
def test_equal_similarities_have_a_closed_form(n, rho):
    first, others = (1 + (n - 1) * rho) / n, (1 - rho) / n
    expected = first**-first * others ** (-others * (n - 1))
    assert vendi(np.full((n, n), rho) + (1 - rho) * np.eye(n)) == pytest.approx(expected, abs=1e-6)


def test_the_order_of_texts_and_their_repetition_change_nothing():
    texts = ["go safe go", "use sink", "go sink", "take pan from table"]
    score = vendi(cosines(texts))
    assert 1 < score < 4
    assert vendi(cosines(texts[::-1])) == vendi(cosines(texts * 3)) == score


def test_words_are_counted():
    assert word_counts(["go safe Go", "", "safe"]).tolist() == [[2, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert cosines(["go safe go", "safe"])[0, 1] == pytest.approx(1 / 5**0.5)


def test_an_encoder_sees_meaning_where_words_differ():
    alike, apart = ["warm the cup", "heat the mug"], ["warm the cup", "open a bank account"]
    assert vendi(cosines(alike, BUNDLED)) < vendi(cosines(alike))
    assert 1 < vendi(cosines(alike, BUNDLED)) < vendi(cosines(apart, BUNDLED)) < 2


def test_a_trajectory_is_its_actions_and_their_feedback():
    assert trajectory(episode(turns=(GO, TAKE))) == "go hall\ntake pan"


def test_successes_and_failures_are_scored_apart_and_lost_episodes_left_out():
    failed = [episode(n, 0, (each,)) for n, each in enumerate((GO, TAKE))]
    solved = [episode(n, 1, (GO,)) for n in range(3)]
    empty, lost = episode(7, 0, ()), replace(episode(8, 0, (turn(action="use", feedback="sink"),)), lost="timeout: x")
    assert diversity([*failed, *solved, empty, lost], None) == {"successes": 1.0, "failures": 2.0}
    assert diversity(solved, None) == {"successes": 1.0}
    assert diversity([empty, lost], None) == {}
