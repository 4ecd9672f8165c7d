"""DeepSpeed's settings: by fields, or in its own JSON, and nothing in two places."""

import json
from pathlib import Path

import pytest

from coevo.configs.load.load import change, load_recipe, validate, written
from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.utilities.errors import ConfigError

SHIPPED = sorted((Path(__file__).parents[3] / "infra" / "deepspeed").glob("*.json"))


def recipe(*overrides):
    settings = [f"update.deepspeed.{override}" for override in overrides]
    return load_recipe("homerules-coevo-rl", settings).update.deepspeed


def test_what_is_not_set_is_not_written_down():
    assert DeepSpeedConfig().model_dump() == {"zero_stage": 1, "tokens": 16384, "timeout": 600.0}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_file_is_one_of_its_stage(path):
    config = recipe(f"settings={path}", "processes=2")
    assert config.zero_stage == int(path.stem.removeprefix("zero")[0])
    assert config.settings == json.loads(path.read_text())
    assert ("offload_optimizer" in config.settings["zero_optimization"]) == path.stem.endswith("offload")
    assert DeepSpeedConfig.model_validate_json(config.model_dump_json()) == config


def test_there_are_files_for_every_stage():
    assert {path.stem for path in SHIPPED} == {"zero0", "zero1", "zero2", "zero2-offload", "zero3", "zero3-offload"}


def test_a_files_content_decides_not_its_name(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"zero_optimization": {"stage": 2}}')
    before = load_recipe("homerules-coevo-rl", [f"update.deepspeed.settings={path}"]).digest()
    path.write_text('{"zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}}')
    assert load_recipe("homerules-coevo-rl", [f"update.deepspeed.settings={path}"]).digest() != before


def test_settings_without_a_stage_leave_the_field_to_say_it():
    config = DeepSpeedConfig(zero_stage=3, settings={"wall_clock_breakdown": True})
    assert config.zero_stage == 3


@pytest.mark.parametrize(
    ("settings", "stage"),
    [
        ({}, 1),
        ({"zero_optimization": {}}, 1),
        ({"zero_optimization": {"overlap_comm": True}}, 0),
        ({"zero_optimization": {"stage": 2}}, 2),
    ],
)
def test_settings_say_the_stage_where_the_field_does_not(settings, stage):
    """A section without a stage is DeepSpeed's own default, 0; without a section it is ours, 1."""
    assert DeepSpeedConfig(settings=settings).zero_stage == stage


def test_the_files_of_the_source_tree_are_found_from_any_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert recipe("settings=infra/deepspeed/zero3-offload.json").zero_stage == 3
    (tmp_path / "infra/deepspeed").mkdir(parents=True)
    (tmp_path / "infra/deepspeed/zero3-offload.json").write_text('{"zero_optimization": {"stage": 2}}')
    assert recipe("settings=infra/deepspeed/zero3-offload.json").zero_stage == 2


def test_the_stage_of_a_file_takes_precedence_over_that_of_a_recipe_or_a_run():
    """A run stores its stage, so that a branch with a file cannot leave it out."""
    file = next(path for path in SHIPPED if "zero3" in path.name)
    assert recipe("zero_stage=1", f"settings={file}").zero_stage == 3
    kept = load_recipe("homerules-coevo-rl", ["update.deepspeed.zero_stage=1"]).model_dump(mode="json")
    assert written(change(kept, [f"update.deepspeed.settings={file}"]), "kept").update.deepspeed.zero_stage == 3


def test_a_stored_run_names_no_file():
    kept = load_recipe("homerules-coevo-rl").model_dump(mode="json")
    kept["update"]["deepspeed"]["settings"] = {"wall_clock_breakdown": True}
    assert validate(kept, "kept").update.deepspeed.settings == {"wall_clock_breakdown": True}
    kept["update"]["deepspeed"]["settings"] = str(SHIPPED[0])
    with pytest.raises(ConfigError, match="a run stores the content, not a file's name"):
        validate(kept, "kept")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["settings=nowhere.json"], r"settings='nowhere\.json' does not exist: name a file"),
        (["settings={}"], r"settings='{}' is not JSON"),
        (["zero_stage=x"], "Input should be 0, 1, 2 or 3"),
        (["settings={four}"], "Input should be 0, 1, 2 or 3"),
        (["settings={owned}"], r"settings\.bf16 is not allowed there: leave it out and set policy\.dtype"),
        (["processes=0"], "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(overrides, message, tmp_path):
    files = {"four": '{"zero_optimization": {"stage": 4}}', "owned": '{"bf16": {"enabled": true}}', "broken": "{"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = {name: str(tmp_path / name) for name in files}
    filled = [o.format(paths["broken"], **paths) if "{" in o else o for o in overrides]
    with pytest.raises(ConfigError, match=message.format(paths["broken"]) if "{}" in message else message) as error:
        recipe(*filled)
    assert "\n" not in str(error.value)
