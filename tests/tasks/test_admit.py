"""What a firing reports, by hand."""

import pytest
from support.batches import entry

from records.entry import Verdict
from tasks.admit import verdict_metrics

CANDIDATES = (entry("a"), entry("b"))


def verdict(admitted):
    return Verdict(3, tuple(e.id for e in CANDIDATES), admitted, 0.6, 0.5, 0.1, 0.1, 8, 0.0)


@pytest.mark.parametrize(("admitted", "counts"), [(True, (2, 0)), (False, (0, 2))])
def test_a_batch_enters_whole_or_not_at_all(admitted, counts):
    metrics = verdict_metrics(CANDIDATES, verdict(admitted))
    assert (metrics["bank/admitted"], metrics["bank/rejected"]) == counts
    assert metrics["replay/low"] == pytest.approx(-0.096)
    assert metrics["replay/high"] == pytest.approx(0.296)
    assert metrics["replay/inside_noise"] == 1.0


def test_without_candidates_there_is_no_replay_to_report():
    assert verdict_metrics((), None) == {"bank/admitted": 0.0, "bank/rejected": 0.0}
