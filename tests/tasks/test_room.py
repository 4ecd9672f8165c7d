"""Placement reaches the servers and the trainer: they sleep before it computes, and each has its own GPUs."""

import pytest

from configs.errors import CoevoError
from configs.load import load_recipe
from tasks.room import make_room, trainer_environment

SMALL, SHARED, SEPARATE = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b", "homerules-jerp-qwen2.5-7b"


class Dozer:
    def __init__(self):
        self.levels = []

    def sleep(self, level):
        self.levels.append(level)


@pytest.mark.parametrize(("recipe", "levels"), [(SHARED, [2]), (SEPARATE, []), (SMALL, [])])
def test_only_servers_that_share_their_gpus_are_sent_to_sleep(recipe, levels):
    engine = Dozer()
    make_room(load_recipe(recipe), engine)
    assert engine.levels == levels


def test_how_deep_they_sleep_is_configured():
    engine = Dozer()
    make_room(load_recipe(SHARED, ["placement.sleep=1"]), engine)
    assert engine.levels == [1]


def test_an_engine_that_cannot_sleep_is_one_line():
    with pytest.raises(CoevoError, match="needs servers that can sleep") as caught:
        make_room(load_recipe(SHARED), object())
    assert "\n" not in str(caught.value)
    make_room(load_recipe(SMALL), object())


def test_the_trainer_sees_the_gpus_that_are_its_own():
    assert trainer_environment(load_recipe(SEPARATE)) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert trainer_environment(load_recipe(SHARED)) == trainer_environment(load_recipe(SMALL)) == {}
