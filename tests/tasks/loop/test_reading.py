"""The warm starts of the shipped recipes: seeds fixed here, settings fixed before they were run."""

import pytest
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.warmstart import start_metrics, warm_start


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_policy_obeys_lessons_within_the_cap(tmp_path):
    config = load_recipe("homerules-coevo-rl", ["seed=3"])
    report = start_metrics(warm_start(config, environment(), tmp_path, Silent()))
    assert report["policy/warmstart/passed"] == 1.0
    assert report["policy/warmstart/success_true_lessons"] >= 0.75
    assert report["policy/warmstart/success_true_lessons"] - report["policy/warmstart/success_false_lessons"] >= 0.5
    assert report["policy/warmstart/steps"] <= 400


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_policy_of_babyai_is_cloned_half_way(tmp_path):
    config = load_recipe("babyai-grpo", ["seed=3"])
    report = start_metrics(warm_start(config, make(config.env), tmp_path, Silent()))
    assert report["policy/warmstart/passed"] == 1.0
    assert 0.5 <= report["policy/warmstart/success_true_lessons"] <= 0.75
    assert report["policy/warmstart/steps"] <= 120
