"""The capability-evolution reward with the potential of reflections, worked out by hand."""

from dataclasses import replace

import pytest
from support.batches import episode, turn
from support.player import expert_player
from support.sessions import opened, shaped

from coevo.configs.load.load import load_recipe
from coevo.memory.writers.quote.reflection import QuoteReflection
from coevo.records.task import BY_SCOPE

SMALL = ["warmstart=null", "evaluation.tasks=4", "update.invalid_penalty=0.0", "update.reward.gamma=0.5"]
SAID = {
    0: "Subtask: a | done\nSubtask: b | done\nSuccess: yes",
    1: "Subtask: a | done\nSubtask: b | open\nSuccess: no",
    2: "what a day",
}


def group():
    """One success and two failures of one task, two turns each; the environment says how far they came."""
    played = [episode(0, n, (turn(), turn(reward=float(n == 0)))) for n in range(3)]
    return [replace(each, success=n == 0, progress=(1.0, 0.2, 0.7)[n]) for n, each in enumerate(played)]


def returns_of(root, potential):
    config = load_recipe("homerules-retroagent", [*SMALL, f"update.reward.potential={potential}"])
    with opened(root, config, played=expert_player()) as session:
        writer = QuoteReflection(config.bank.writer, BY_SCOPE, lambda played, *_: SAID[played.replica])
        session.parts = replace(session.parts, writer=writer)
        played = group()
        session.baselines = {played[0].task.id: 0.2}
        episodes = shaped(session, played).episodes
        assert [each.progress for each in session.draft.episodes] == [1.0, 0.2, 0.7]
        return [each.shaped for each in episodes], session.baselines[played[0].task.id], session.draft.metrics


def test_the_potential_of_a_reflection_is_what_is_gained_on_the_baseline(tmp_path):
    returns, baseline, metrics = returns_of(tmp_path, "reflection")
    # Potentials 1, 1/2 and, malformed, 0 gain .8, .3 and 0; totals 1.8, .3, 0 in halves, discounted with .5: 3/4 each.
    assert returns == pytest.approx([1.35, 0.225, 0.0])
    assert baseline == pytest.approx(1 / 3)
    assert metrics["policy/reflection/malformed"] == 1.0
    assert metrics["policy/reflection/accuracy"] == pytest.approx(2 / 3)
    # Potentials err by 0, .3 and .7.
    assert metrics["policy/reflection/potential_error"] == pytest.approx(1 / 3)


def test_the_potential_of_the_environment_needs_no_reflection(tmp_path):
    returns, _, metrics = returns_of(tmp_path, "progress")
    # Progress 1, .2, .7 gains .8, 0, .5.
    assert returns == pytest.approx([1.35, 0.0, 0.375])
    assert not [name for name in metrics if name.startswith("policy/reflection/")]
