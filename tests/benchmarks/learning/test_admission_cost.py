"""Cost of admission, from manifests."""

import pytest

from benchmarks.learning import admission_cost
from coevo.lineage.revision.manifest import Manifest


def revision(pairs, episodes, judge, rollout):
    state = {"metrics": {"bank/replay/pairs": pairs, "cost/episodes": episodes}}
    return Manifest(state, {"metrics": {"cost/seconds/judge": judge, "cost/seconds/rollout": rollout}})


def test_a_replayed_episode_is_told_beside_one_of_the_rollout_where_something_was_replayed(capsys):
    cold = [Manifest({}, {})] * 3
    warm = [revision(4.0, 108.0, 0.25, 2.0), revision(0.0, 100.0, 0.0, 9.0), revision(8.0, 116.0, 0.75, 3.0)]
    found = admission_cost.measure([*cold, *warm])
    # 24 episodes in 1 s, and 200 in 5 s.
    assert found == {
        "iterations": 2,
        "episodes": 12.0,
        "seconds": 0.5,
        "pairs_a_second": 12.0,
        "rollout_seconds": 2.5,
        "replay_ratio": pytest.approx(1 / 24 * 200 / 5),
    }
    admission_cost.report(found)
    assert "12 episodes in 0.50 s, 12 pairs a second; rollouts take 2.50 s" in capsys.readouterr().out
