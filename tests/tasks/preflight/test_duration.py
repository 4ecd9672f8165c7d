"""Seconds of an iteration, worked out by hand."""

from dataclasses import replace

import pytest
from support.policies import WORDS

from coevo.configs.load.load import load_recipe
from coevo.models.capacity.devices import Device, Machine
from coevo.models.capacity.model_shape import shape_of
from coevo.tasks.preflight.duration import durations
from coevo.tasks.preflight.memory import Lengths

CONVERSATION = "textworld-coevo-rl-qwen3-0.6b"
MACHINE = Machine((), Device("cpu", 2**33, 1e11, 2e10))
LENGTHS = Lengths(shortest=50, longest=150, answer=10, last=120)


def seconds(*overrides, turns=4.0, recipe="homerules-coevo-rl"):
    config = load_recipe(recipe, overrides)
    return durations(config, MACHINE, replace(shape_of(config.policy, len(WORDS)), parameters=10**6), LENGTHS, turns)


def test_each_step_is_the_mean_of_an_iteration():
    found = seconds(
        "rollout.tasks=16", "rollout.group_size=8", "bank.every=10", "bank.admission.replays=8",
        "bank.writer.candidates=16", "evaluation.every=10", "evaluation.tasks=64", "evaluation.final_panels=[no-bank]",
        "iterations=40",
    )  # fmt: skip
    # Prefill of 100 tokens and 10 of answers, 2 flops a parameter and token, at 0.3 of the rate, 4 turns.
    episode = 4 * 110 * 2 * 10**6 / (0.3 * 1e11)
    assert found["rollout"] == pytest.approx(128 * episode)
    assert found["judging"] == pytest.approx(2 * 8 * 16 / 10 * episode)
    assert found["evaluation"] == pytest.approx(64 * episode * (1 / 10 + 1 / 40 + 2 / 40))
    assert "sync" not in found


def test_twice_the_threads_take_half_the_time():
    once, twice = (seconds(f"rollout.engine.threads={count}") for count in (1, 2))
    assert twice["rollout"] == pytest.approx(once["rollout"] / 2)
    assert twice["update"] == pytest.approx(once["update"] / 2)


def test_a_conversation_computes_no_token_twice_and_starts_again_when_it_is_long():
    sizes = ("rollout.tasks=64", "rollout.group_size=4", "rollout.engine.threads=1")
    for memory, new in (("null", 30), ("4", 30), ("3", (1 + 2 / 3) * 30), ("2", 3 * 30), ("1", 100)):
        found = seconds(*sizes, f"context.memory_length={memory}", recipe=CONVERSATION)
        tokens = 256 * 4 * (new + 10)
        assert found["rollout"] == pytest.approx(tokens * 2 * 10**6 / (0.3 * 1e11))
        assert found["update"] == pytest.approx(5 * tokens * 2 * 10**6 / (0.3 * 1e11))
    rows = seconds(*sizes, "update.packing=rows", recipe=CONVERSATION)
    assert rows["update"] == pytest.approx(5 * 256 * 4 * (100 + 10) * 2 * 10**6 / (0.3 * 1e11))


def test_no_more_candidates_are_replayed_than_a_firing_can_propose():
    # Two tasks in a firing of two iterations give four contrasts of two lessons each.
    sixteen, eight, four = (
        seconds("rollout.tasks=2", "bank.every=2", f"bank.writer.candidates={most}", recipe=CONVERSATION)["judging"]
        for most in (16, 8, 4)
    )
    assert sixteen == eight == pytest.approx(2 * four)


def test_internalization_plays_a_panel_three_times():
    once = ("evaluation.every=10", "iterations=40", "evaluation.final_panels=[]", "bank.every=4", "lineage.every=4")
    plain, more = (seconds(*once, f"evaluation.internalization={every}")["evaluation"] for every in (0, 5))
    assert more / plain == pytest.approx((1 / 10 + 1 / 40 + 3 / (5 * 4)) / (1 / 10 + 1 / 40))


def test_a_run_without_replay_or_update_has_neither():
    assert set(seconds(recipe="homerules-experience-only")) == {"rollout", "judging", "evaluation"}
    assert "judging" not in seconds("bank=null")


def test_fewer_revisions_save_less_often():
    assert seconds("lineage.every=4", "bank=null")["save"] == pytest.approx(seconds("bank=null")["save"] / 4)
