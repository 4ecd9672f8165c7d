"""The runs of a study are ordinary ones with fixed names; what cannot be is refused before any starts."""

import re
import shutil

import pytest
from support import small_run

from coevo.configs.load.load import load_recipe
from coevo.configs.load.load_study import changed, load_studies, load_study, stored_study
from coevo.flows.studies.outcome import outcomes
from coevo.flows.studies.study_runs import StudyLock, check_parts, check_runs, hours_of, runs_of
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError
from tests.flows.studies.conftest import SETTINGS, build


def test_runs_are_named_after_arm_and_seed_and_go_seed_by_seed(study):
    runs = runs_of(study)
    assert [each.name for each in runs] == ["few-few-s1", "few-many-s1", "few-few-s2", "few-many-s2"]
    assert [(each.config.seed, each.config.bank.retrieval.k) for each in runs] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert runs[3].config == load_recipe(small_run.RECIPE, ["iterations=3", "bank.retrieval.k=4", "seed=2"])


def test_a_study_that_needs_something_is_refused():
    with pytest.raises(CoevoError, match="'retroagent-harder-boards' cannot run yet: it needs a pretrained policy"):
        runs_of(load_study("retroagent-harder-boards"))


@pytest.mark.parametrize(
    "settings", [["bank.retrieval.k=1"], ["bank.retrieval={k: 1}"], ["iterations=3", "bank.retrieval.k=1"]]
)
def test_two_arms_that_are_the_same_configuration_are_refused(settings):
    arms = [{"name": "few", "settings": ["bank.retrieval.k=1"]}, {"name": "many", "settings": settings}]
    with pytest.raises(CoevoError, match="few: the arms few and many have the same settings: change one of them"):
        runs_of(stored_study(SETTINGS | {"arms": arms}, "test"))
    arms[1]["settings"] = [*settings, "iterations=4"]
    assert len(runs_of(stored_study(SETTINGS | {"arms": arms}, "test"))) == 4


@pytest.mark.parametrize("study", [study for study in load_studies() if not study.needs], ids=lambda study: study.name)
def test_every_arm_of_a_shipped_study_fits_its_environment_and_this_machine(study, tmp_path):
    runs = runs_of(changed(study, None, 1, []))
    check_runs(study, runs, Workspace(tmp_path))
    check_parts(runs)


def test_an_arm_whose_prompts_do_not_fit_its_policy_has_no_hours(study):
    tight = changed(study, None, 1, ["policy.max_positions=216"])
    with pytest.raises(CoevoError, match=r"^few-few-s1: "):
        hours_of(runs_of(tight))


def test_a_run_of_the_same_configuration_is_taken_and_another_refused(study, studied, tmp_path):
    check_runs(study, runs_of(study), studied)
    shutil.copytree(studied.root, tmp_path / "copy")
    workspace = Workspace(tmp_path / "copy")
    other = changed(study, None, None, ["rollout.tasks=3"])
    said = "run 'few-few-s1' holds another configuration: rollout.tasks is 16, the study sets 3: give the study another"
    for check in (lambda runs: check_runs(other, runs, workspace), lambda runs: outcomes(other, runs, workspace)):
        with pytest.raises(CoevoError, match=re.escape(said)):
            check(runs_of(other))
    renamed = changed(other, "fewer", None, [])
    check_runs(renamed, runs_of(renamed), workspace)


def test_a_longer_run_is_another_configuration(study, tmp_path):
    build(tmp_path, "few", 1, "1111", iterations=4)
    with pytest.raises(CoevoError, match="iterations is 4, the study sets 3"):
        check_runs(study, runs_of(study), Workspace(tmp_path))


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ({"name": "agent/success/seen-house"}, "Did you mean 'seen-houses'"),
        ({"name": "agent/success/no-bank", "over": "area"}, "the arm does not play the panel 'no-bank'"),
        ({"name": "bank/size", "minus": "agent/success/seen"}, "agent/success/seen: the arm does not play the panel"),
    ],
)
def test_a_metric_of_a_panel_that_is_not_played_is_refused(metric, said, tmp_path):
    study = stored_study(SETTINGS | {"metrics": [metric]}, "test")
    with pytest.raises(CoevoError, match=f"few, arm few: metrics: .*{said}"):
        check_runs(study, runs_of(study), Workspace(tmp_path))


def test_a_second_process_is_refused(tmp_path):
    lock = StudyLock(Workspace(tmp_path), "few")
    with writer_lock(lock), pytest.raises(CoevoError, match="'few' is in use"), writer_lock(lock):
        pass
