"""A toy agent learns where things are: judged lessons help it, planted harmful ones stay out."""

from random import Random

import pytest

import coevo
from benchmarks.learning.toy_agent import HARMFUL, improve


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_judged_lessons_help_and_harmful_ones_stay_out(tmp_path, seed):
    found = improve(tmp_path, seed)
    assert abs(found["start"] - 0.25) < 0.04
    assert found["judged"] >= 0.95 and found["judged_harmful"] == 0
    assert found["plain"] <= 0.9 and found["plain_harmful"] == HARMFUL


def test_lessons_without_effect_seldom_enter_however_often_they_are_proposed(tmp_path):
    bank = coevo.open_bank(tmp_path)

    def replay(memory, entry, draws):
        side = len(memory.retrieve(entry.strategy))
        return [float(Random(f"{entry.id}/{draw}/{side}").random() < 0.5) for draw in draws]

    names = [f"lesson {number}" for number in range(60)]
    for _ in range(4):
        bank.propose(names)
        bank.learn(replay, replays=16)
    assert len(bank.entries()) <= 0.05 * len(names)
