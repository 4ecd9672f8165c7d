"""Metrics of a firing, by hand."""

from support.batches import entry

from coevo.memory.stats import Stats, retrieval_counts
from coevo.tasks.steps.bank import count_metrics, counts


def test_entries_that_come_and_go_are_counted():
    a, b, c = entry("a"), entry("b"), entry("c")
    found = counts({a.id}, {b.id, c.id}, (b.id, entry("d").id, entry("e").id))
    assert found == {
        "bank/admitted": 2.0,
        "bank/retired": 1.0,
        "bank/rejected": 2.0,
        "bank/size": 2.0,
        "bank/admitted_share": 0.5,
    }


def test_a_firing_without_candidates_has_no_share_of_them():
    assert "bank/admitted_share" not in counts({entry("a").id}, set(), ())


def test_retrievals_of_the_active_entries_are_metrics():
    found = count_metrics(retrieval_counts(["a", "b", "c"], {"a": Stats("a", 4), "b": Stats("b", 6)}))
    assert {name: value for name, value in found.items() if "histogram" not in name} == {
        "bank/retrieval/count_min": 0.0,
        "bank/retrieval/count_median": 4.0,
        "bank/retrieval/count_max": 6.0,
        "bank/retrieval/never_share": 1 / 3,
    }
    bins = {name: value for name, value in found.items() if "histogram" in name}
    assert {name: value for name, value in bins.items() if value} == {
        "bank/retrieval/count_histogram/from_0": 1.0,
        "bank/retrieval/count_histogram/from_4": 2.0,
    }
    assert count_metrics(None) == {}
