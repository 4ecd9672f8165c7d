"""The arms of a study are compared by seed, and a finding that is reversed is said so; figures by hand."""

import pytest

from coevo.configs.load.load_study import stored_study
from coevo.flows.studies.outcome import Outcome, area
from coevo.flows.studies.result import compared
from coevo.records.intervals import chance_beyond
from coevo.tasks.cost import Spent

SETTINGS = {
    "name": "few",
    "paper": "a guess",
    "finding": "Few entries are better.",
    "recipe": "homerules-coevo-rl",
    "arms": [{"name": "few"}, {"name": "many", "expected": "worse"}, {"name": "none"}],
    "seeds": 3,
    "metrics": [
        {"name": "agent/success/seen-houses"},
        {"name": "bank/size", "better": "lower"},
        {"name": "cost/episodes", "claimed": False},
    ],
}
STUDY = stored_study(SETTINGS, "test")


def outcome(arm, seed, *values, episodes=10):
    return Outcome(f"few-{arm}-s{seed}", arm, seed, tuple(map(float, values)), Spent(episodes, 100, 1.0), seed)


FEW = [outcome("few", seed, 0.5 + seed / 10, 20, 10) for seed in (1, 2, 3)]


def rows(found, metric="agent/success/seen-houses"):
    return {row.arm: row for row in compared(STUDY, found).rows if row.metric == metric}


def test_differences_are_paired_by_seed_and_have_students_interval():
    # Gains -.1, -.2, -.3: sd .1, t(.975, 2) = 4.302653, half = .248414.
    many = [outcome("many", seed, 0.5, 20, 10) for seed in (3, 1, 2)]
    row = rows([*FEW, *many])["many"]
    assert (row.difference, row.difference_low, row.difference_high) == pytest.approx(
        (-0.2, -0.448414, 0.048414), abs=1e-6
    )
    assert (row.seeds, row.pairs, row.mean, row.low, row.high) == (
        3,
        3,
        0.5,
        None,
        None,
    )  # equal ones would look certain
    assert row.verdict == "undecided"


@pytest.mark.parametrize(("shift", "verdict"), [(-0.1, "as the paper"), (0.1, "reversed"), (0.0, "undecided")])
def test_a_verdict_follows_the_side_of_the_interval(shift, verdict):
    noise = (0.0, 0.001, -0.001)
    many = [outcome("many", seed, 0.5 + seed / 10 + shift + noise[seed - 1], 20, 10) for seed in (1, 2, 3)]
    assert rows([*FEW, *many])["many"].verdict == verdict


@pytest.mark.parametrize(("seeds", "verdict"), [(2, "undecided"), (6, "undecided"), (7, "as the paper")])
def test_a_few_equal_differences_decide_nothing(seeds, verdict):
    sides = {"few": 0.51, "many": 0.50}
    found = [outcome(arm, seed, value, 20, 10) for arm, value in sides.items() for seed in range(1, seeds + 1)]
    row = rows(found)["many"]
    assert row.verdict == verdict
    assert (row.low, row.high, row.difference_low, row.difference_high) == (None,) * 4


def test_the_direction_is_that_of_the_metric_and_what_is_not_claimed_gets_no_verdict():
    many = [outcome("many", seed, 0.1, 30 + seed, 90) for seed in (1, 2, 3)]
    result = compared(STUDY, [*FEW, *many, outcome("none", 1, 0.9, 5, 1)])
    verdicts = {(row.metric, row.arm): row.verdict for row in result.rows}
    assert verdicts["bank/size", "many"] == "as the paper"
    assert verdicts["cost/episodes", "many"] is None
    assert verdicts["agent/success/seen-houses", "none"] is None
    assert verdicts["agent/success/seen-houses", "few"] is None


def test_a_part_of_the_runs_says_how_many_seeds_there_are():
    result = compared(STUDY, [FEW[0], FEW[1], outcome("many", 2, 0.4, 20, 10, episodes=None)])
    found = {row.arm: row for row in result.rows if row.metric == "agent/success/seen-houses"}
    assert (found["few"].seeds, found["many"].seeds, found["none"].seeds) == (2, 1, 0)
    assert (found["many"].pairs, found["many"].difference) == (1, pytest.approx(-0.3))
    assert (found["many"].low, found["many"].difference_low, found["many"].verdict) == (None, None, "undecided")
    assert (found["none"].mean, found["none"].difference) == (None, None)
    assert (found["few"].episodes, found["many"].episodes) == (10, None)
    assert result.summary() == "3 of 9 runs are finished; comparisons: 2 undecided"


def test_a_reversed_finding_is_counted_and_kept():
    many = [outcome("many", seed, 0.9 + seed / 9, 30 + seed / 100, 10) for seed in (1, 2, 3)]
    result = compared(STUDY, [*FEW, *many])
    assert result.summary() == "6 of 9 runs are finished; comparisons: 1 as the paper, 1 reversed"
    document = result.document()
    assert [row["verdict"] for row in document["rows"] if row["arm"] == "many"] == ["reversed", "as the paper", None]
    assert document["runs"][0]["values"]["bank/size/end"] == 20


def test_an_area_is_the_mean_height_of_a_curve():
    assert area({0: 0.0, 10: 1.0, 40: 1.0}) == pytest.approx((5 + 30) / 40)
    assert area({7: 0.25}) == 0.25


BOUNDED = stored_study(
    SETTINGS
    | {
        "arms": [{"name": "few"}],
        "metrics": [{"name": "agent/success/a", "minus": "agent/success/b", "below": 0.05}, {"name": "bank/size"}],
    },
    "test",
)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # t(.975, 2) = 4.302653, half an interval is that times sd / sqrt(3): .024841 for the first two.
        ((0.01, 0.02, 0.03), "as the paper"),
        ((0.08, 0.09, 0.10), "reversed"),
        ((0.03, 0.04, 0.05), "undecided"),
        ((0.01,), "undecided"),
    ],
)
def test_a_bound_is_claimed_of_the_reference(values, verdict):
    found = compared(BOUNDED, [outcome("few", seed, each, 20) for seed, each in enumerate(values, 1)])
    row, other = found.rows
    assert (row.metric, row.expected, row.verdict) == ("agent/success/a minus agent/success/b", "below 0.05", verdict)
    assert (other.expected, other.verdict) == (None, None)
    assert found.summary().endswith(f"1 {verdict}")
    assert list(found.document()["runs"][0]["values"]) == [f"{row.metric}/end", "bank/size/end"]


EQUAL = stored_study(
    SETTINGS
    | {
        "arms": [{"name": "few"}, {"name": "many", "expected": "equal"}],
        "metrics": [{"name": "agent/success/a", "within": 0.05}],
    },
    "test",
)


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ((0.0, 0.01, -0.01), "as the paper"),
        ((0.10, 0.11, 0.09), "reversed"),
        ((0.0, 0.04, -0.04), "undecided"),
        ((0.02, 0.06, 0.10), "undecided"),  # outside the bounds, but not beyond the nearer one
        ((0.0,), "undecided"),
    ],
)
def test_equality_is_claimed_within_a_bound(gains, verdict):
    few = [outcome("few", seed, 0.5) for seed in range(1, len(gains) + 1)]
    many = [outcome("many", seed, 0.5 + gain) for seed, gain in enumerate(gains, 1)]
    row = compared(EQUAL, [*few, *many]).rows[1]
    assert (row.expected, row.verdict) == ("within 0.05", verdict)


RISING = stored_study(
    SETTINGS
    | {
        "arms": [{"name": name, "expected": "positive"} for name in ("few", "many")],
        "metrics": [{"name": "agent/success/a", "over": "gain"}],
    },
    "test",
)


def test_claims_of_a_study_are_decided_together():
    """By Student's t the chances are .0438 and .0261; by Holm the smaller one counts twice, and decides both."""
    gains = {"few": (0.10, 0.16, 0.22), "many": (0.10, 0.14, 0.18)}
    assert [chance_beyond(each, 0.0) for each in gains.values()] == pytest.approx([0.043817, 0.026148], abs=1e-6)
    found = [outcome(arm, seed, gain) for arm, each in gains.items() for seed, gain in enumerate(each, 1)]
    rows = compared(RISING, found).rows
    assert [row.chance for row in rows] == pytest.approx([0.052297, 0.052297], abs=1e-6)
    assert [(row.expected, row.verdict) for row in rows] == [("above 0", "undecided")] * 2


def test_a_finding_stands_by_its_primary_metric_once_all_runs_are_there():
    worse = [outcome("many", seed, 0.3 + seed / 10 + seed / 1000, 20, 10) for seed in (1, 2, 3)]
    result = compared(STUDY, [*FEW, *worse])
    assert {row.verdict for row in result.rows if row.arm == "many"} == {"as the paper", "undecided", None}
    assert result.standing() == "undecided"  # the runs of the arm none are missing
    none = [outcome("none", seed, 0.5, 20, 10) for seed in (1, 2, 3)]
    assert compared(STUDY, [*FEW, *worse, *none]).standing() == "as the paper"
    better = [outcome("many", seed, 0.7 + seed / 10 + seed / 1000, 20, 10) for seed in (1, 2, 3)]
    assert compared(STUDY, [*FEW, *better]).standing() == "reversed"
