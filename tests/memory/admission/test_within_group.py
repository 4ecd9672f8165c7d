"""Within-group admission, by hand."""

from dataclasses import replace

import pytest
from support.batches import entry, task

from coevo.configs.bank.admission_config import WithinGroupAdmissionConfig
from coevo.memory.admission.within_group import WithinGroupAdmission
from coevo.memory.library import AdmissionState, Library
from coevo.memory.trials import OnTrial, Pair, parse, revisited, text
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Verdict
from coevo.utilities.errors import CoevoError


def never(trials, replicas):
    raise AssertionError("within-group admission replays nothing")


def rule(**settings):
    return WithinGroupAdmission(WithinGroupAdmissionConfig(type="within-group", **settings))


def tried(name, with_it, without, iterations=5, groups=1):
    return OnTrial(entry(name), (task(1), task(2)), iterations, groups, tuple(with_it), tuple(without))


def decide(admission, trials, candidates=(), entries=(), looks=lambda lesson: ()):
    library = Library(entries, admission=AdmissionState(trials=trials, looks=looks))
    return admission.decide(Proposal(tuple(candidates)), library, never, 9)


def test_a_candidate_enters_by_the_gap_of_its_matched_halves_when_its_trial_is_over():
    good, bad = tried("good", [1, 1, 0, 1], [0, 1, 0, 0]), tried("bad", [0, 0, 1, 0], [1, 0, 1, 0])
    early, late = (tried(name, [1, 1], [0, 0], iterations=n) for name, n in (("early", 4), ("late", 6)))
    assert [rule().is_over(trial) for trial in (early, good, late)] == [False, True, True]
    decision = decide(rule(), [good, bad, early])
    assert [(e.strategy, e.created, e.edited) for e in decision.entries] == [("good", 9, 9)]
    assert decision.ended == (good.entry.id, bad.entry.id)
    assert [(j.verdict.difference, j.verdict.pairs, j.verdict.admitted) for j in decision.judged] == [
        (0.5, 4, True),
        (-0.25, 4, False),
    ]
    # sd of (1, 0, 0, 1) is sqrt(1/3): the standard error is half of it.
    assert decision.judged[0].verdict.stderr == pytest.approx((1 / 3) ** 0.5 / 2)
    assert decision.metrics["bank/trial/difference"] == 0.125
    assert decision.metrics["bank/trial/ended"] == 2.0


def test_confidence_asks_for_more_than_a_positive_mean():
    noisy = tried("noisy", [1, 1, 0, 1, 0, 1] * 4, [0, 1, 0, 0, 1, 0] * 4)
    sure = tried("sure", [1] * 24, [0, 0, 0, 0, 0, 1] * 4)
    assert [e.strategy for e in decide(rule(), [noisy, sure]).entries] == ["noisy", "sure"]
    once = decide(rule(confidence=0.95), [noisy, sure])
    assert [e.strategy for e in once.entries] == ["sure"]
    # Tried again and again, with the same gap, the other enters, too.
    looks = [replace(once.judged[0].verdict, revision=n) for n in range(5)]
    again = decide(rule(confidence=0.95), [noisy], looks=lambda lesson: looks)
    assert [e.strategy for e in again.entries] == ["noisy"]


def test_a_candidate_that_no_group_has_tried_is_refused():
    decision = decide(rule(delta=-0.5), [tried("unseen", [], [], groups=0)])
    assert decision.entries == ()
    unseen = entry("unseen").id
    assert [judged.verdict for judged in decision.judged] == [
        Verdict(9, (unseen,), False, 0.0, 0.0, 0.0, 0.0, 0, -0.5, seen_share=0.0)
    ]


def test_a_candidate_that_no_treated_episode_saw_is_refused_and_the_share_that_saw_it_reported():
    lucky, seen = (
        replace(tried(name, [1, 1, 0, 1], [0, 1, 0, 0]), unseen=n) for name, n in (("lucky", 4), ("seen", 3))
    )
    decision = decide(rule(), [lucky, seen])
    assert [e.strategy for e in decision.entries] == ["seen"]
    assert [(j.verdict.difference, j.verdict.admitted) for j in decision.judged] == [(0.5, False), (0.5, True)]
    assert [judged.verdict.seen_share for judged in decision.judged] == [0.0, 0.25]
    assert decision.metrics["bank/trial/judged_seen_share"] == 0.125


def test_candidates_go_on_trial_while_there_is_room():
    over, running = tried("over", [1], [0]), tried("running", [1], [0], iterations=2)
    names = ("running", "held", "a", "b", "c")
    decision = decide(rule(candidates=3), [over, running], map(entry, names), [entry("held")])
    assert [e.strategy for e in decision.begun] == ["a", "b"]
    counts = {name: decision.metrics[f"bank/trial/{name}"] for name in ("begun", "ended", "turned_away")}
    assert counts == {"begun": 2.0, "ended": 1.0, "turned_away": 1.0}
    full = decide(rule(candidates=1), [running], map(entry, names))
    assert (full.begun, full.metrics["bank/trial/turned_away"]) == ((), 4.0)
    two = [running, tried("another", [1], [0], iterations=2)]
    fewer = decide(rule(candidates=1), two, map(entry, names))  # a resume has lowered the number
    assert (fewer.begun, fewer.metrics["bank/trial/turned_away"]) == ((), 4.0)


def test_a_barred_lesson_on_trial_ends_without_a_verdict():
    over = tried("over", [1], [0])
    library = Library([], admission=AdmissionState(frozenset({over.entry.id}), [over]))
    decision = rule().decide(Proposal(), library, never, 9)
    assert (decision.entries, decision.judged, decision.ended) == ((), (), (over.entry.id,))


def test_the_least_tried_candidates_are_played_first_each_with_its_next_task():
    often, seldom = tried("often", [1], [0], groups=3), tried("seldom", [1], [0], groups=0)
    others = replace(seldom, entry=entry("third"), tasks=(task(3),), groups=1)
    chosen = revisited([often, seldom, others], 4)
    # `often` is at its second task; it gets none of the first turn, since `seldom` and `third` come first.
    assert [(task_.data["n"], trial.entry.strategy) for trial, task_ in chosen.values()] == [
        (1, "seldom"),
        (3, "third"),
        (2, "often"),
    ]
    assert len(revisited([often, seldom, others], 2)) == 2


def test_an_iteration_adds_its_groups():
    before = tried("x", [1], [0], iterations=1, groups=1)
    after = before.after([[Pair(1.0, 0.0), Pair(0.0, 0.0)], [Pair(1.0, 1.0)]])
    assert (after.iterations, after.groups) == (2, 3)
    assert (after.rewards_with, after.rewards_without) == ((1, 1.0, 0.0, 1.0), (0, 0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda found: found.replace('"iterations": 5', '"iterations": "many"'), "trials cannot be read: 0.iterations"),
        (lambda found: found.replace('"strategy": "', '"strategy": "\\u202e'), "candidate 0: strategy"),
        (lambda found: found[:-9], "trials cannot be read"),
        (
            lambda found: found.replace('"split": "train"\n   }', '"split": "seen-houses"\n   }'),
            "task of an evaluation",
        ),
        (lambda found: found.replace("1.0", "NaN"), "no pairs of numbers"),
    ],
)
def test_trials_from_elsewhere_are_checked(change, named):
    stored = text([tried("a", [1.0], [0.0])])
    with pytest.raises(CoevoError, match=named):
        parse(change(stored))
