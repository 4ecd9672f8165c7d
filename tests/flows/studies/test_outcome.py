"""Outcomes are read from finished runs; those that are missing or unfinished are left out."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from coevo.configs.load.load_study import changed, stored_study
from coevo.configs.study_config import ArmConfig, MatchConfig, MetricConfig
from coevo.flows.studies.outcome import Outcome, left_of, outcomes, value
from coevo.flows.studies.result import compared
from coevo.flows.studies.study_runs import StudyRun, runs_of
from coevo.lineage.workspace import Workspace
from coevo.tasks.cost import Spent
from coevo.utilities.errors import CoevoError
from tests.flows.studies.conftest import SETTINGS, build


def test_finished_runs_have_the_value_at_the_end_the_area_and_their_cost(study, studied):
    found = {each.run: each for each in outcomes(study, runs_of(study), studied)}
    assert set(found) == {"few-few-s1", "few-many-s1", "few-few-s2"}
    # Success 0, .25 and .75 after 0, 2 and 3 iterations: an area of .25 + .5, over 3.
    assert found["few-few-s1"].values == pytest.approx((0.75, 0.25))
    assert (found["few-few-s1"].spent.episodes, found["few-few-s1"].spent.tokens) == (12, 1200)
    assert found["few-few-s1"].ended == 3 * 60_000


def test_a_run_that_has_iterations_left_does_not_count(study, tmp_path):
    build(tmp_path, "few", 1, "1111", iterations=4)
    longer = changed(study, None, None, ["iterations=4"])
    assert outcomes(longer, runs_of(longer), Workspace(tmp_path)) == []


@pytest.mark.parametrize(
    "wrong",
    [{"name": "bank/sizes"}, {"name": "agent/success/seen-houses", "minus": "bank/sizes"}],
    ids=["name", "minus"],
)
def test_a_metric_that_no_revision_has_is_named_with_the_nearest_one_beside_the_values_of_others(studied, wrong):
    study = stored_study(SETTINGS | {"metrics": [wrong, {"name": "bank/size"}]}, "test")
    found = outcomes(study, runs_of(study), studied)
    assert [each.values for each in found] == [(None, 2.0)] * 3
    (said,) = found[0].lacks.values()
    assert said.startswith("run 'few-few-s1' has no metric 'bank/sizes'. Did you mean 'bank/size'?")
    result = compared(study, found)
    assert result.missing() == [f"Not compared: {said} (as 2 more)"]
    assert [row.mean for row in result.rows] == [None, None, 2.0, 2.0]
    assert result.document()["runs"][0]["values"] == {"bank/size/end": 2.0}


def test_a_run_that_never_has_a_metric_has_its_absent_value_unless_all_lack_it(studied):
    def build(name):
        wanted = [{"name": name, "over": over, "absent": 0.5} for over in ("end", "area", "rise")]
        study = stored_study(SETTINGS | {"metrics": wanted}, "test")
        return study, outcomes(study, runs_of(study), studied)

    study, (first, *others) = build("bank/sizes")
    assert first.values == (0.5, 0.5, 0.0)
    assert len(compared(study, [first, *others]).missing()) == 1
    assert {row.mean for row in compared(study, [first, *others]).rows} == {None}

    has = replace(first, values=(1.0, 1.0, 1.0), lacks={})
    result = compared(study, [has, *others])
    assert not result.missing()
    assert result.rows[0].mean == pytest.approx((1.0 + 0.5) / 2)


def test_a_difference_is_that_of_two_metrics_of_one_iteration(studied):
    metrics = [
        {"name": "agent/success/seen-houses", "minus": name, "over": over}
        for name in ("agent/success/seen-houses", "bank/size")
        for over in ("end", "area")
    ]
    study = stored_study(SETTINGS | {"metrics": metrics}, "test")
    found = outcomes(study, runs_of(study), studied)[0].values
    # The size of the bank, 2, is last known after 2 iterations, where success is .25.
    assert found[:3] == pytest.approx((0.0, 0.0, 0.25 - 2))


def test_two_metrics_that_never_meet_are_refused():
    with pytest.raises(CoevoError, match=r"'run' never has 'bank/0' and 'bank/1' at once: compare other metrics"):
        value(MetricConfig(name="bank/0", minus="bank/1"), trail({"bank/0": 1.0}, {"bank/1": 1.0}), "run")


def costs(episodes, iterations):
    each = {"cost/episodes": float(episodes), "cost/tokens": 1.0}
    found = trail({}, *([each] * iterations))
    for revision in found:
        revision.rates = {}
    return found


@pytest.mark.parametrize(("iterations", "left"), [(0, 2), (1, 1), (2, 6), (7, 1), (8, 0), (9, 0)])
def test_an_arm_that_costs_as_much_as_another_continues_until_it_does(iterations, left):
    partner = Outcome("study-one-s1", "one", 1, (), Spent(80, 1, 1.0), 1)
    arm = ArmConfig(name="two", matches=MatchConfig(arm="one"))
    run = StudyRun("study-two-s1", arm, 1, SimpleNamespace(iterations=2), "study-one-s1")
    assert left_of(run, costs(10, iterations), partner) == left
    if iterations >= 2:
        with pytest.raises(CoevoError, match="costs as much as 'study-one-s1', whose episodes are not known"):
            left_of(run, costs(10, iterations))


def test_a_gain_is_the_last_value_minus_the_first():
    assert value(MetricConfig(name="bank/share", over="gain"), shares(0.25, 0.0, 1.0), "run") == 1.0 - 0.25


def trail(*metrics):
    """Revisions of the iterations 0, 1, ..., with these metrics."""
    return [
        SimpleNamespace(
            revision=n, iteration=n, metrics=found, state={}, restored_from=None, parent=n - 1 if n else None
        )
        for n, found in enumerate(metrics)
    ]


def shares(*values):
    return trail({}, *({} if each is None else {"bank/share": each} for each in values))


def test_a_rise_compares_the_last_quarter_of_the_iterations_with_the_first():
    rise = MetricConfig(name="bank/share", over="rise")
    assert value(rise, shares(0.25, 0.0, 0.0, 1.0, 1.0, 0.75, 1.0, 0.5), "run") == (1.0 + 0.5) / 2 - 0.25 / 2
    assert value(rise, shares(None, 0.25, 0.0, 1.0, 1.0, 0.75, None, 0.5), "run") == 0.5 - 0.25
    assert value(rise, shares(0.25, 0.5, 1.0), "run") == 1.0 - 0.25
    before = trail({"bank/share": 0.5}, {}, {}, {}, {"bank/share": 1.0})
    assert value(rise, before, "run") == 1.0 - 0.5


@pytest.mark.parametrize(("values", "quarter"), [((0.5, 0.5, 0.5, None), "last"), ((None, 0.5, 0.5, 0.5), "first")])
def test_a_quarter_without_a_value_has_no_mean(values, quarter):
    line = f"run 'run' has no 'bank/share' in the {quarter} quarter of its iterations: give it an absent value"
    with pytest.raises(CoevoError, match=line):
        value(MetricConfig(name="bank/share", over="rise"), shares(*values), "run")


def test_an_iteration_without_the_metric_has_the_value_of_absent():
    silent = shares(0.5, 0.25, None, None)
    found = {
        over: value(MetricConfig(name="bank/share", over=over, absent=0.0), silent, "run")
        for over in ("end", "area", "rise")
    }
    assert found == {"end": 0.0, "area": pytest.approx((0.375 + 0.125 + 0.0) / 3), "rise": -0.5}
