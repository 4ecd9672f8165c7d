"""Eq. 7 with values worked out by hand."""

import math
from dataclasses import replace

import pytest

from coevo.configs.bank.admission_config import ReplayAdmissionConfig
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.evidence import lower_bound
from coevo.memory.admission.replay import PairedRewards, admission, exceeds, judge, metrics
from coevo.memory.library import AdmissionState, Library
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry, Verdict, entry_id

CANDIDATES = [Entry(entry_id("", text), text, "", "", text, "", "train", ("1/r/t/0",), 3, 3) for text in ("a", "b")]
EQ7 = {"per": "batch", "replays": 8, "confidence": None}


def verdict(rewards_with, rewards_without, delta=0.0):
    return judge(CANDIDATES, PairedRewards(rewards_with, rewards_without), ReplayAdmissionConfig(**EQ7, delta=delta), 3)


EMPTY = Library(())


def decide(config, candidates, replay, library=EMPTY):
    decision = admission(ReplayAdmissionConfig(**EQ7 | config)).decide(Proposal(tuple(candidates)), library, replay, 3)
    return decision, [judged.verdict.admitted for judged in decision.judged]


def test_worked_values():
    # Gains 1, 0, 1, 0: mean 1/2, sample variance 1/3, standard error sqrt(1/3) / 2.
    result = verdict([1, 1, 1, 0], [0, 1, 0, 0])
    assert result.admitted
    assert (result.reward_with, result.reward_without, result.difference) == (0.75, 0.25, 0.5)
    assert result.stderr == pytest.approx((1 / 3) ** 0.5 / 2)
    assert (result.pairs, result.delta, result.revision) == (4, 0.0, 3)
    assert result.candidates == tuple(entry.id for entry in CANDIDATES)
    assert not result.significant
    low, high = result.interval
    # t(3) at 0.975 is 3.182446.
    assert (low, high) == pytest.approx((0.5 - 3.182446 * (1 / 3) ** 0.5 / 2, 0.5 + 3.182446 * (1 / 3) ** 0.5 / 2))


@pytest.mark.parametrize(
    ("rewards_with", "rewards_without", "delta", "admitted"),
    [
        ([1, 0], [0, 1], 0.0, False),
        ([1, 0], [1, 0], 0.0, False),
        ([0, 0], [1, 0], 0.0, False),
        ([1, 0], [0, 0], 0.5, False),
        ([1, 1], [0, 0], 0.5, True),
        ([1, 0], [1, 0], -0.1, True),
        ([0.1 + 0.2, 0.3], [0.3, 0.3], 0.0, False),
    ],
)
def test_the_gain_must_exceed_delta(rewards_with, rewards_without, delta, admitted):
    assert verdict(rewards_with, rewards_without, delta).admitted is admitted


def test_a_single_pair_has_no_error_and_equal_gains_have_none():
    assert verdict([1], [0]).stderr == 0.0
    assert verdict([1, 1, 1], [0, 0, 0]).stderr == 0.0
    # Gains 1 and 0: deviation sqrt(1/2), over sqrt(2).
    assert verdict([1, 0], [0, 0]).stderr == pytest.approx(0.5)


def test_a_single_pair_admits_and_none_does_not():
    assert verdict([1], [0]).admitted
    ids = tuple(entry.id for entry in CANDIDATES)
    nothing = Verdict(3, ids, False, 0.0, 0.0, 0.0, 0.0, 0, -1.0)
    assert verdict([math.nan, 1], [1, math.nan], -1.0) == nothing
    assert verdict([math.nan], [math.nan], -1.0) == nothing


@pytest.mark.parametrize(("gain", "exceeded"), [(1e-12, True), (4e-13, False), (0.0, False), (-1e-12, False)])
def test_a_gain_counts_from_twelve_decimals_on(gain, exceeded):
    assert exceeds(gain, 0.0) is exceeded


def test_without_candidates_nothing_is_replayed():
    decision, _ = decide({}, [], replay=None)
    assert decision == Decision(metrics={"bank/replay/pairs": 0.0})


def gains(trials, replicas):
    """The first candidate earns 1, the second loses 1/2; alone or together."""
    worth = {CANDIDATES[0].id: 1.0, CANDIDATES[1].id: -0.5}
    return [[sum(worth[entry.id] for entry in trial.added)] * replicas * len(trial.sources) for trial in trials]


@pytest.mark.parametrize(
    ("per", "batches"), [("batch", [tuple(CANDIDATES)]), ("entry", [(entry,) for entry in CANDIDATES])]
)
def test_both_sides_of_all_batches_are_replayed_at_once(per, batches):
    asked = []

    def replay(trials, replicas):
        asked.append((trials, replicas))
        return gains(trials, replicas)

    decide({"per": per, "replays": 5}, CANDIDATES, replay)
    assert asked == [([Trial(added, batch) for batch in batches for added in (batch, ())], 5)]


def test_a_batch_enters_whole_or_not_at_all():
    decision, admitted = decide({}, CANDIDATES, gains)
    assert (decision.entries, admitted) == (tuple(CANDIDATES), [True])
    assert decision.metrics["bank/replay/difference"] == 0.5
    assert decide({"delta": 0.5}, CANDIDATES, gains)[0].entries == ()


def test_each_entry_enters_on_its_own_gain():
    decision, admitted = decide({"per": "entry", "replays": 4}, CANDIDATES, gains)
    assert (decision.entries, admitted) == ((CANDIDATES[0],), [True, False])
    assert [judged.candidates for judged in decision.judged] == [(entry,) for entry in CANDIDATES]
    # Means over two verdicts, pairs added up: (1 - 1/2) / 2 and 4 + 4.
    assert (decision.metrics["bank/replay/difference"], decision.metrics["bank/replay/pairs"]) == (0.25, 8.0)


@pytest.mark.parametrize(("lost", "admitted"), [(4, True), (5, False), (8, False)])
@pytest.mark.parametrize("beside", [0, math.nan])
def test_half_of_the_pairs_must_have_been_played(lost, admitted, beside):
    found = verdict([math.nan] * lost + [1] * (8 - lost), [beside] * lost + [0] * (8 - lost))
    assert (found.pairs, found.admitted, found.reward_with) == (8 - lost, admitted, 1.0 if lost < 8 else 0.0)


def test_verdicts_without_pairs_are_in_no_mean():
    played = verdict([1, 1, 1, 0], [0, 0, 0, 0])
    assert metrics([played, verdict([math.nan], [0])]) == metrics([played])
    assert metrics([played])["bank/replay/difference"] == 0.75
    assert metrics([verdict([math.nan], [0])]) == {"bank/replay/pairs": 0.0}


def test_the_figures_are_means_over_verdicts_and_the_sum_of_their_pairs():
    # Of the first, see the worked values; the second has gains 1 and 1: at most 1 - 0.025^(1/2) of further ones differ.
    half, differ = 3.182446 * (1 / 3) ** 0.5 / 2, 1 - 0.025**0.5
    assert metrics([verdict([1, 1, 1, 0], [0, 1, 0, 0]), verdict([1, 1], [0, 0])], "x") == pytest.approx(
        {
            "x/difference": 0.75,
            "x/low": (0.5 - half + 1 - 2 * differ) / 2,
            "x/high": (0.5 + half + 1) / 2,
            "x/reward_with": 0.875,
            "x/reward_without": 0.125,
            "x/significant": 0.0,
            "x/pairs": 6.0,
        }
    )


@pytest.mark.parametrize("rewards", [[], [[1.0]], [[1.0], [0.0], [1.0]]])
def test_two_sides_are_replayed_for_each_batch(rewards):
    with pytest.raises(ValueError, match="zip"):
        decide({}, CANDIDATES, lambda trials, replicas: rewards)


def test_candidates_without_a_pair_are_refused_whatever_delta_allows():
    assert (found := verdict([], [], delta=-1.0)).pairs == 0
    assert not found.admitted


@pytest.mark.parametrize("rewards", [([1, 0], [1]), ([1], [1, 0])])
def test_sides_that_do_not_pair_are_an_error(rewards):
    with pytest.raises(ValueError, match="do not pair"):
        verdict(*rewards)


SURE = {"per": "entry", "replays": 32, "confidence": 0.95}


def worth(**gains):
    """A replay of candidates that gain so much in every pair, and the trials and replicas it is asked for."""
    asked = []

    def replay(trials, replicas):
        asked.append((trials, replicas))
        return [[sum(gains[each.strategy] for each in trial.added)] * replicas for trial in trials]

    return replay, asked


def test_a_candidate_is_played_no_further_once_it_is_admitted():
    replay, asked = worth(a=1.0, b=0.0)
    decision, admitted = decide(SURE, CANDIDATES, replay)
    assert (decision.entries, admitted) == ((CANDIDATES[0],), [True, False])
    # Sixteen gains of 1 are enough, see the bounds; the other candidate is played to the end, each replica once.
    first, second = ([Trial((entry,), (entry,)), Trial((), (entry,))] for entry in CANDIDATES)
    rounds = [first + second, first + second, second, second]
    expected = [([replace(trial, first=8 * n) for trial in trials], 8) for n, trials in enumerate(rounds)]
    assert asked == expected
    assert [judged.verdict.pairs for judged in decision.judged] == [16, 32]
    assert [judged.verdict.bound > 0 for judged in decision.judged] == [True, False]


@pytest.mark.parametrize(("replays", "rounds"), [(1, [1]), (8, [8]), (9, [8, 1]), (20, [8, 8, 4])])
def test_no_more_replicas_are_played_than_configured(replays, rounds):
    replay, asked = worth(a=0.0, b=0.0)
    decide(SURE | {"replays": replays}, CANDIDATES, replay)
    assert [replicas for _, replicas in asked] == rounds


def test_a_refused_candidate_is_judged_by_its_earlier_firings_too():
    replay, _ = worth(a=0.25, b=0.0)
    looks, admitted = [], []
    library = Library((), admission=AdmissionState(looks=lambda lesson: looks))
    while True not in admitted:
        decision, admitted = decide(SURE, CANDIDATES[:1], replay, library)
        looks += [judged.verdict for judged in decision.judged]
    bounds = [look.bound for look in looks]
    assert len(looks) > 1
    assert bounds == sorted(bounds)
    assert [bound > 0 for bound in bounds] == [False] * (len(looks) - 1) + [True]
    assert looks[-1].bound == lower_bound(looks, 0.95)


def test_candidates_that_are_judged_together_have_no_earlier_firings():
    replay, _ = worth(a=0.5, b=0.5)
    state = AdmissionState(looks=lambda lesson: pytest.fail("evidence of one lesson is none of a batch"))
    library = Library((), admission=state)
    decision, _ = decide(SURE | {"per": "batch"}, CANDIDATES, replay, library)
    assert decision.judged[0].verdict.bound == lower_bound([decision.judged[0].verdict], 0.95)


def test_a_measurement_that_lost_most_of_its_pairs_has_no_bound():
    config = ReplayAdmissionConfig(**SURE)
    rewards, earlier = PairedRewards([math.nan] * 5 + [1] * 4, [0] * 9), verdict([1] * 64, [0] * 64)
    found = judge(CANDIDATES[:1], rewards, config, 3, [earlier])
    assert (found.pairs, found.bound, found.admitted) == (4, None, False)


def test_rewards_of_another_range_need_as_many_pairs():
    def replay(trials, replicas):
        return [[10.0 * len(trial.added)] * replicas for trial in trials]

    narrow, wide = (
        decide(SURE, CANDIDATES[:1], replay, Library((), admission=AdmissionState(span=span)))[0]
        for span in (10.0, 1000.0)
    )
    assert [judged.verdict.pairs for judged in (*narrow.judged, *wide.judged)] == [16, 32]
    assert (narrow.entries, wide.entries) == (tuple(CANDIDATES[:1]), ())
