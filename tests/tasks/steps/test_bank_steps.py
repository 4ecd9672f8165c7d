"""Metrics of a firing, by hand."""

from types import SimpleNamespace

import pytest
from support.batches import entry, episode, turn

from coevo.memory.stats import Stats, retrieval_counts
from coevo.records.metric_names import SPREAD, UNSHOWN
from coevo.tasks.play.episode_metrics import spread
from coevo.tasks.steps.bank_steps import count_metrics, counts, unshown


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


BARE, SHOWN = [episode(turns=(turn(retrieved=()),))], [episode(turns=(turn(retrieved=()), turn()))]


def played(ended, draft=0.0, head=2.0, entries=("e",), within=False, warmup=0):
    """A session in iteration 7; ``within``: an earlier iteration of the same revision was played."""
    made = SimpleNamespace(metrics={UNSHOWN: head} if head else {})
    return SimpleNamespace(
        pending=SimpleNamespace(metrics={UNSHOWN: draft} if draft else {}),
        stores=SimpleNamespace(lineage=SimpleNamespace(history=SimpleNamespace(head=lambda: made))),
        bank=SimpleNamespace(entries=entries),
        iteration=7,
        frozen_at=6 if within else 7,
        due=SimpleNamespace(is_warm=lambda: warmup <= 7),
        ended=ended,
    )


@pytest.mark.parametrize(
    ("session", "now"),
    [
        (played(BARE), 3.0),
        (played(BARE, head=0.0), 1.0),
        (played(SHOWN), None),
        (played(BARE, entries=()), None),
        (played([]), 2.0),
        (played(BARE, warmup=8), 2.0),
        (played(BARE, warmup=7), 3.0),
        (played(BARE, draft=4.0, within=True), 5.0),
        (played(BARE, within=True), 1.0),
        (played(SHOWN, draft=4.0, within=True), 0.0),
    ],
)
def test_iterations_that_show_nothing_of_a_bank_are_counted_across_revisions(session, now):
    assert unshown(session) == ({} if now is None else {UNSHOWN: now})


def test_the_noise_of_success_is_that_between_tasks():
    """By hand: rates 0.5, 0 and 1 have the deviation 0.5, and their mean 0.5 / sqrt(3)."""
    batch = [episode(0, 0), episode(0, 1), episode(1, 0), episode(1, 2), episode(2, 1), episode(2, 3)]
    assert spread(batch) == {SPREAD: pytest.approx(0.5 / 3**0.5)}
    assert spread(batch[:2]) == {}
