"""A start measures the prompts of the dry run, with as few turns as they are made of."""

from contextlib import closing
from itertools import count

import pytest
from support.simulators import Sums

from coevo.configs.load.load import load_recipe
from coevo.envs.homerules import HomeRules
from coevo.envs.registry import make
from coevo.tasks.preflight import rehearse as module
from coevo.tasks.preflight.forecast import check_fits
from coevo.tasks.preflight.rehearse import TASKS, TURNS, glance, rehearse
from coevo.utilities.errors import CoevoError

SMALL = "homerules-coevo-rl"


@pytest.mark.parametrize(
    "recipe", [SMALL, "homerules-coevo-rl-qwen3-0.6b", "homerules-retroagent-qwen2.5-7b", "babyai-grpo"]
)
def test_a_start_measures_the_lengths_of_the_dry_run(recipe):
    config = load_recipe(recipe, ["evaluation.tasks=8"])
    with closing(make(config.env)) as env:
        whole, brief = rehearse(config, env), glance(config, env)
    for name in ("tasks", "shortest", "longest", "words", "turns", "guessed"):
        assert getattr(brief, name) == getattr(whole, name), name


def test_a_start_plays_two_turns_of_eight_tasks_and_starts_each_task_once(monkeypatch):
    config = load_recipe(SMALL, ["evaluation.tasks=8"])
    env, calls = HomeRules(), {"start": 0, "step": 0}

    def counted(name, method):
        def call(*given):
            calls[name] += 1
            return method(*given)

        return call

    for name in calls:
        monkeypatch.setattr(env, name, counted(name, getattr(env, name)))
    found = glance(config, env)
    panels = len({*config.evaluation.panels, *config.evaluation.final_panels})
    assert calls == {"start": TASKS + 8 * panels, "step": TASKS * TURNS} == {"start": 40, "step": 16}
    assert found.length == TURNS


def test_a_start_refuses_prompts_that_only_a_full_window_makes_too_long(tmp_path):
    # The first prompt with lessons has 223 tokens, the longest with a window of turns 232; an answer has 12.
    for positions, fits in ((243, False), (244, True)):
        config = load_recipe(SMALL, [f"policy.max_positions={positions}"])
        if fits:
            check_fits(config, make(config.env), tmp_path)
            continue
        with pytest.raises(CoevoError, match=r"come to 232 \+ 12 tokens, the policy attends to 243: lower context"):
            check_fits(config, make(config.env), tmp_path)


@pytest.mark.parametrize(("seconds", "measured"), [(10, 1), (1000, 6)])
def test_a_start_does_not_wait_for_all_panels_of_a_slow_simulator(monkeypatch, seconds, measured):
    config = load_recipe(SMALL, ["evaluation.tasks=6", "evaluation.panels=[far]", "evaluation.final_panels=[]"])
    monkeypatch.setattr(module, "monotonic", count(step=6).__next__)  # the clock advances by 6 s per look
    monkeypatch.setattr(module, "GLANCE_TIMEOUT_S", seconds)
    with closing(Sums()) as env:
        assert glance(config, env).tasks == TASKS + measured
