"""A micro-batch beside TRL's, at a tiny shape."""

import pytest

from benchmarks.gpu.cases import Case
from benchmarks.update import micro_batches
from benchmarks.update.update_turns import TARGETS
from coevo.configs.policy_config import ShapeConfig
from coevo.utilities.errors import CoevoError

TINY = ShapeConfig(
    architecture="qwen3", vocabulary=256, hidden_size=32, layers=2, heads=2, kv_heads=1, head_dim=16,
    intermediate_size=64, max_positions=4096, tied=True,
)  # fmt: skip
CASE = Case(TINY, None, rows=4, prompt=1, answer=1, target=None, expected=60)


@pytest.mark.parametrize("layout", TARGETS)
def test_both_compute_the_same_log_probs(layout, tmp_path):
    found = micro_batches.measure(tmp_path / "place", layout, CASE, turns=4)
    assert found["gap"] < 1e-5
    assert found["ratio"] == 4 * found["trl_seconds"] / found["seconds"]


def test_other_log_probs_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(micro_batches, "CLOSE", -1.0)
    with pytest.raises(CoevoError, match="not the same update"):
        micro_batches.measure(tmp_path / "place", "conversation", CASE, turns=4)
