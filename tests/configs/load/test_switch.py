"""A part gets another type, and what the old one had of its own does not stand in the way."""

import pytest

from coevo.configs.load.load import change, load_recipe
from coevo.configs.load.setting_place import fitted
from coevo.configs.run_config import RunConfig
from coevo.utilities.errors import ConfigError

COEVO, GIGPO, FIRST = "homerules-coevo-rl", "homerules-gigpo", "homerules-coevo-rl-policy-first"


def test_settings_that_the_new_type_has_stay_and_the_others_go():
    below = {"bank": {"every": 2, "retrieval": {"type": "simutil-ucb", "k": 3, "alpha": 0.7, "share": 0.5}}}
    above = {"bank": {"retrieval": {"type": "bm25", "b": 0.5}}}
    assert fitted(below, above, RunConfig) == {
        "bank": {"every": 2, "retrieval": {"type": "simutil-ucb", "k": 3, "share": 0.5}}
    }
    assert below["bank"]["retrieval"]["alpha"] == 0.7


def test_what_is_written_beside_the_old_type_or_without_any_goes_too():
    below = {"bank": {"retrieval": {"k": 4, "weights": {"strategy": 2.0}}}}
    above = {"bank": {"retrieval": {"type": "utility"}}}
    assert fitted(below, above, RunConfig) == {"bank": {"retrieval": {"k": 4}}}
    assert fitted(below, {"bank": {"every": 3}}, RunConfig) == below


def test_options_of_one_environment_are_not_passed_to_another():
    recipe = "textworld-coevo-rl-qwen3-0.6b"
    kept = {"rooms": 2, "objects": 4, "quest": 2}
    assert load_recipe(recipe, ["env.options.rooms=3"]).env.options == kept | {"rooms": 3}
    assert load_recipe(recipe, ["env.type=lake:Lake"]).env.options == {}
    mine = load_recipe(recipe, ["env={type: lake:Lake, options: {size: 4}, simulator: {workers: 16}}"]).env
    assert (mine.options, mine.simulator.workers) == ({"size": 4}, 16)


@pytest.mark.parametrize(
    ("below", "above"),
    [
        ({"zzz": {"a": 1}}, {"zzz": {"b": 2}}),
        ({"context": {"template": {"a": True}}}, {"context": {"template": {"b": True}}}),
        ({"bank": None}, {"bank": {"retrieval": {"type": "bm25"}}}),
        ({"bank": {"retrieval": {"k": 4}}}, {"bank": None}),
        ({"policy": {"type": "scratch", "layers": 2}}, {"policy": {"type": "nope"}}),
    ],
)
def test_all_stays_where_no_type_is_changed_to_another_that_there_is(below, above):
    assert fitted(below, above, RunConfig) == below


def test_a_stranger_is_not_forgotten_where_the_same_type_is_written_again(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"defaults: [recipes/{COEVO}]\nbank: {{retrieval: {{zzz: 1}}}}\n")
    with pytest.raises(ConfigError, match=r"bank\.retrieval\.zzz: no such key"):
        load_recipe(str(path), ["bank.retrieval.type=tfidf"])


@pytest.mark.parametrize(
    ("recipe", "settings", "part", "kind"),
    [
        (GIGPO, ["update.advantage.type=grpo"], "advantage", "grpo"),
        (GIGPO, ["update.advantage.type=rloo", "update.advantage.drop_zero_variance=false"], "advantage", "rloo"),
        (COEVO, ["update.reward={type: discounted, spread: uniform}"], "reward", "discounted"),
    ],
)
def test_a_type_is_one_override(recipe, settings, part, kind):
    assert getattr(load_recipe(recipe, settings).update, part).type == kind


def test_a_recipe_may_give_a_part_of_what_it_builds_on_another_type(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"defaults: [recipes/{FIRST}, methods/gigpo]\nbank: {{}}\nschedule: {{type: joint}}\n")
    assert load_recipe(str(path)).schedule.type == "joint"
    path.write_text(f"defaults: [recipes/{GIGPO}]\nupdate: {{advantage: {{type: mean}}}}\n")
    assert load_recipe(str(path)).update.advantage.type == "mean"


def test_a_branch_may_leave_its_schedule():
    settings = load_recipe(FIRST).model_dump(mode="json")
    assert change(settings, ["schedule.type=joint"])["schedule"] == {"type": "joint"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["update.advantage.type=rloo", "update.advantage.gamma=0.9"], "gamma: no such key"),
        (["update.advantage.gamma=0.9", "update.advantage.type=rloo"], "gamma: no such key"),
        (["update.advantage.type=none"], "choose one of 'grpo'"),
        (["env.type=package.module:Class"], ""),
    ],
)
def test_what_is_asked_for_itself_is_never_forgotten(settings, says):
    if not says:
        assert load_recipe(GIGPO, settings).env.model_dump() == {"type": "package.module:Class", "options": {}}
        return
    with pytest.raises(ConfigError, match=says):
        load_recipe(GIGPO, settings)
