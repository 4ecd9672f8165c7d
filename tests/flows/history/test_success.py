"""Success with its noise: intervals, the best revision, and the last one before a fall."""

import pytest

from coevo.flows.history.success import best_before_last, best_revision, held_out_success, last_fall, training_success
from coevo.lineage.revision.manifest import Manifest
from coevo.records.metric_names import SPREAD


def manifest(number, outcomes=None, train=None, panel="p", parent=True, **state):
    metrics = {} if train is None else {"agent/success/train": train[0], SPREAD: train[1]}
    return Manifest(
        {
            "revision": number,
            "iteration": number,
            "parent": number - 1 if parent and number else None,
            "restored_from": None,
            "config": {"evaluation": {"panels": ["seen"]}, "rollout": {"tasks": 16}, "bank": None},
            "panels": {} if outcomes is None else {"seen": panel},
            "outcomes": {} if outcomes is None else {"seen": outcomes},
            "metrics": metrics,
            **state,
        },
        {"metrics": {}},
    )


def test_held_out_success_has_wilsons_interval_and_lost_tasks_do_not_count():
    found = held_out_success(manifest(0, "1" * 15 + "0" * 5 + "--"))
    # Wilson's interval of 15 of 20, by hand: (.5313, .8881)
    assert (found.mean, found.low, found.high) == pytest.approx((0.75, 0.5313, 0.8881), abs=1e-4)
    assert held_out_success(manifest(0)) is None and held_out_success(manifest(0, "--")) is None


def test_the_best_revision_is_the_earliest_of_equal_ones_on_the_trail():
    history = [manifest(0, "0011"), manifest(1), manifest(2, "0111"), manifest(3, "0111")]
    assert best_revision(history).revision == 2
    rolled_back = [*history[:3], manifest(3, parent=False, restored_from=0)]
    assert best_revision(rolled_back).revision == 0
    assert best_revision([manifest(0)]) is None
    assert [best_before_last(history[:n]) and best_before_last(history[:n]).revision for n in (1, 3, 4)] == [None, 0, 2]


def test_a_fall_is_named_if_chance_does_not_explain_it():
    before, after = "1" * 40, "1" * 25 + "0" * 15
    history = [manifest(0, before), manifest(1), manifest(2, after), manifest(3, after)]
    fall = last_fall(history)
    assert (fall.before.revision, fall.after.revision) == (0, 2)
    assert last_fall([manifest(0, before), manifest(1, "1" * 37 + "0" * 3)]) is None
    assert last_fall([manifest(0, before), manifest(1, after, panel="other tasks")]) is None
    assert last_fall([manifest(0, after), manifest(1, before)]) is None


def test_runs_without_a_change_seldom_show_a_fall():
    """Simulation: 200 runs of ten evaluations of independent outcomes; the whole run counts once."""
    import random

    shown = 0
    for number in range(200):
        draw = random.Random(number)
        history = [manifest(n, "".join("01"[draw.random() < 0.7] for _ in range(48))) for n in range(10)]
        shown += last_fall(history) is not None
    assert shown <= 0.05 * 200 + 3 * (0.05 * 0.95 * 200) ** 0.5


def test_training_success_has_an_interval_over_tasks_and_not_over_episodes():
    found = training_success(manifest(1, train=(0.75, 0.1)))
    # 16 tasks: variance of the mean (15 * 16 * .01 + .75 * .25) / 256 = .010107; quantile with 15 degrees 2.1314
    assert (found.low, found.high) == pytest.approx(
        (0.75 - 2.1314 * 0.010107**0.5, 0.75 + 2.1314 * 0.010107**0.5), abs=1e-4
    )
    assert training_success(manifest(1)) is None


def test_sessions_of_agents_count_by_their_groups():
    """The recipe's number of tasks is not what agents have played."""
    played = manifest(1, train=(0.5, 0.15))
    fewer = Manifest({**played.state, "metrics": {**played.metrics, "agent/sessions/groups": 8.0}}, played.observed)
    # 8 tasks: variance (7 * 8 * .0225 + .25) / 64 = .023594; quantile of Student's t with 7 degrees of freedom 2.3646
    assert training_success(fewer).high - 0.5 == pytest.approx(2.3646 * 0.023594**0.5, abs=1e-4)
