"""Studies are read, checked in one line, changed and made from grids; every arm of a shipped one is possible."""

from pathlib import Path

import pytest

from coevo.configs.load.load_study import changed, configured, grid, load_studies, load_study
from coevo.configs.load.shipped_files import describe, names
from coevo.configs.study_config import MetricConfig
from coevo.utilities.errors import ConfigError

PANEL = "seen-houses"
STUDIES = load_studies()
POSSIBLE = [study for study in STUDIES if not study.needs]
MINE = """
paper: a guess
finding: Few entries are better than many.
recipe: homerules-coevo-rl
settings: [iterations=3]
arms:
  - {name: few, settings: [bank.retrieval.k=1]}
  - {name: many, expected: worse, settings: [bank.retrieval.k=4]}
metrics:
  - {name: agent/success/seen-houses}
"""


@pytest.fixture
def mine(tmp_path):
    def write(old="", new=""):
        path = tmp_path / "mine.yaml"
        assert old in MINE
        path.write_text(MINE.replace(old, new, 1))
        return str(path)

    return write


def test_the_findings_of_all_five_papers_have_studies():
    papers = {study.paper for study in STUDIES}
    assert {"CoEvo-RL", "SLEA-RL", "Context-lite Multi-turn RL", "JERP", "RetroAgent"} <= papers
    assert len(POSSIBLE) > 20
    assert [study.name for study in STUDIES] == names("studies")
    assert all(describe("studies", name).endswith(".") for name in names("studies"))


@pytest.mark.parametrize("study", POSSIBLE, ids=lambda study: study.name)
def test_every_arm_of_a_shipped_study_is_a_configuration_of_its_own(study):
    configs = [configured(study, arm, 1) for arm in study.arms]
    lengths = [(config.iterations, arm.matches) for config, arm in zip(configs, study.arms, strict=True)]
    assert len({(config.digest(), *length) for config, length in zip(configs, lengths, strict=True)}) == len(configs)
    assert {config.iterations for config in configs} != {0}
    assert configured(study, study.arms[0], 2).seed == 2
    is_claim = any(arm.expected for arm in study.arms) or any(metric.below is not None for metric in study.metrics)
    assert is_claim == (study.primary is not None)


@pytest.mark.parametrize("study", [study for study in STUDIES if study.needs], ids=lambda study: study.name)
def test_a_study_that_cannot_run_says_what_it_needs_and_has_no_arms(study):
    assert study.arms == ()


def test_a_file_is_a_study_and_its_name_that_of_the_file(mine):
    study = load_study(mine())
    assert (study.name, study.base.name, study.seeds) == ("mine", "few", 5)
    assert configured(study, study.arms[1], 7).bank.retrieval.k == 4


def test_the_settings_of_an_arm_win_over_those_of_the_study(mine):
    study = changed(load_study(mine()), "other", 2, ["bank.retrieval.k=9", "rollout.tasks=3"])
    config = configured(study, study.arms[0], 1)
    assert (study.name, study.seeds, config.bank.retrieval.k, config.rollout.tasks) == ("other", 2, 1, 3)


def test_a_study_stays_what_it_is_where_nothing_is_changed(mine):
    study = load_study(mine())
    assert changed(study, None, None, []) == study
    with pytest.raises(ConfigError, match="seeds = 0"):
        changed(study, None, 0, [])
    with pytest.raises(ConfigError, match="mine: settings: seed=7: leave it out"):
        changed(study, None, None, ["seed=7"])


def test_the_reference_is_the_first_arm_or_the_one_that_is_named(mine):
    study = load_study(mine("expected: worse, ", ""))
    assert study.base.name == "few"
    assert load_study(mine("arms:", "reference: few\narms:")).base.name == "few"
    assert study.model_copy(update={"reference": "many"}).base.name == "many"


def test_a_difference_of_metrics_is_named_by_both():
    plain = MetricConfig(name="agent/success/seen-houses")
    assert plain.title == "agent/success/seen-houses"
    assert plain.model_copy(update={"minus": "bank/size"}).title == "agent/success/seen-houses minus bank/size"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("finding", "findings", "mine: findings: no such key. Did you mean 'finding'?"),
        ("name: many", "name: few", "two have the same name"),
        ("arms:", "reference: none\narms:", "reference=none is no arm: choose one of few, many"),
        ("name: few,", "name: few, expected: better,", "arm few is the reference: leave out its expected"),
        ("agent/success", "success", "metrics.0.name"),
        ("paper: a guess\n", "", "mine: paper: is missing; set it"),
        ("metrics:\n  - {name: agent/success/seen-houses}", "", "a study compares at least two arms by at least one"),
        ("name: few", "name: a few", "arms.0.name"),
        ("metrics:\n", "metrics:\n  - {name: agent/success/seen-houses}\n", "seen-houses over end is there twice"),
        ("[iterations=3]", "[seed=7]", "mine: settings: seed=7: leave it out: every arm plays the seeds 1 to seeds"),
        ("bank.retrieval.k=4", "seed=7", "mine: arm many: seed=7: leave it out"),
        ("recipe: homerules-coevo-rl", "recipe: [", "not readable as YAML"),
        ("expected: worse", "expected: equal", "arm many is expected to be equal: set within for each claimed metric"),
        ("name: few,", "name: few, matches: {arm: many},", "arm few matches many: name an arm that stands before it"),
    ],
)
def test_a_mistake_in_a_study_is_named_in_one_line(mine, old, new, said):
    with pytest.raises(ConfigError) as error:
        load_study(mine(old, new))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_of_an_arm_names_the_arm(mine):
    study = load_study(mine("bank.retrieval.k=4", "bank.retrieval.k=-4"))
    with pytest.raises(ConfigError, match=r"mine, arm many: .*bank\.retrieval\.k = -4"):
        configured(study, study.arms[1], 1)


def test_a_misspelt_study_gets_a_suggestion():
    with pytest.raises(ConfigError, match="Did you mean 'jerp-frozen-rules'"):
        load_study("jerp-frozen-rule")


def test_a_grid_has_an_arm_for_each_combination():
    study = grid("homerules-coevo-rl", ["bank.every=5,20", "bank.retrieval.type=tfidf,tfidf+embedding"], PANEL)
    assert study.name == "homerules-coevo-rl-every-type"
    assert [arm.name for arm in study.arms] == [
        "every-5-type-tfidf", "every-5-type-tfidf-embedding", "every-20-type-tfidf", "every-20-type-tfidf-embedding",
    ]  # fmt: skip
    assert configured(study, study.arms[3], 1).bank.retrieval.type == "tfidf+embedding"
    assert [metric.name for metric in study.metrics] == ["agent/success/seen-houses"] * 2
    assert not any(arm.expected for arm in study.arms)


def test_a_grid_has_up_to_64_arms():
    assert len(grid("homerules-coevo-rl", [f"bank.every={','.join(map(str, range(1, 65)))}"], PANEL).arms) == 64


def test_names_of_a_grid_are_cut_after_40_characters():
    axes = ["bank.retrieval.min_entries=0", "rollout.group_size=8", "rollout.max_turns=2000,3000"]
    study = grid("homerules-coevo-rl", axes, PANEL)
    assert study.name == "homerules-coevo-rl-min_entries-group_siz"
    assert [arm.name for arm in study.arms] == [f"min_entries-0-group_size-8-max_turns-{first}00" for first in (2, 3)]


def test_names_of_a_grid_that_are_equal_when_cut_are_numbered():
    axes = [
        "bank.retrieval.step_query=observation,instruction+observation", "bank.admission.confidence=0.9,0.95",
        "bank.every=1,5",
    ]  # fmt: skip
    names = [arm.name for arm in grid("homerules-coevo-rl", axes, PANEL).arms]
    assert names[0] == "step_query-observation-confidence-0.9-1"
    assert len({*names}) == 8


def test_a_grid_compares_by_the_panel_that_is_played():
    study = grid("homerules-coevo-rl", ["bank.every=1,5"], "other-facts", ["evaluation.panels=[other-facts]"])
    assert {metric.name for metric in study.metrics} == {"agent/success/other-facts"}


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        (["bank.every"], "KEY=VALUE,VALUE"),
        (["bank.every=5,"], "KEY=VALUE,VALUE"),
        (["=5,20"], "KEY=VALUE,VALUE"),
        (["bank.every=5"], "at least two arms"),
        (["bank.every=1,5,1"], "the axis has bank.every=1 twice"),
        (["bank.every=1", "bank.retrieval.k=2", "bank.every=2"], "two axes of the grid are of bank.every: give all"),
        ([f"bank.every={','.join(map(str, range(1, 66)))}"], "at most 64"),
        (["seed=1,2"], "--grid: arm seed-1: seed=1: leave it out"),
    ],
)
def test_an_axis_that_is_not_written_so_is_refused(axes, said):
    with pytest.raises(ConfigError, match=said):
        grid("homerules-coevo-rl", axes, PANEL)


def test_an_axis_is_no_setting_of_every_arm():
    line = "bank.every is an axis of the grid and a setting of every arm: leave one of them out"
    with pytest.raises(ConfigError, match=line):
        grid("homerules-coevo-rl", ["bank.every=1,2"], PANEL, ["iterations=2", "bank.every=3"])


def test_one_arm_is_enough_for_a_bound(mine):
    one = MINE.replace("  - {name: many, expected: worse, settings: [bank.retrieval.k=4]}\n", "")
    metric = "{name: agent/success/seen-houses"
    path = Path(mine())
    path.write_text(one.replace(metric, f"{metric}, below: 0.5"))
    assert [arm.name for arm in load_study(str(path)).arms] == ["few"]
    path.write_text(one)
    with pytest.raises(
        ConfigError, match="at least two arms by at least one metric, or one arm by a metric with below"
    ):
        load_study(str(path))
