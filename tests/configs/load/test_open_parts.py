"""Parts from other packages: what a configuration may name, when it is imported, and how a mistake is refused."""

import sys

import pytest
from support import outside
from support.outside import PARTS, fresh, imported  # noqa: F401

from coevo.configs.load.load import load_recipe, validate
from coevo.configs.load.open_parts import open_parts
from coevo.configs.outside_part import build, outside_parts
from coevo.configs.run_config import RunConfig
from coevo.lineage.trust import extend_path
from coevo.utilities.errors import ConfigError

RECIPE = "homerules-coevo-rl"
pytestmark = pytest.mark.usefixtures("fresh")


def opened(folder, settings):
    config = load_recipe(RECIPE, [*settings, f"python_path=[{folder}]"])
    extend_path(config)
    open_parts(config)
    return config


def refused(folder, settings):
    with pytest.raises(ConfigError) as caught:
        opened(folder, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("setting", PARTS)
def test_reading_a_configuration_imports_nothing_and_opening_it_builds_the_part(tmp_path, setting):
    config = load_recipe(RECIPE, outside.settings(outside.write(tmp_path), setting))
    stored = validate(config.model_dump(mode="json"), "stored")
    assert (stored, stored.digest(), imported()) == (config, config.digest(), [])
    (part,) = outside_parts(stored)
    with pytest.raises(ConfigError, match="is loaded only by a command that plays or trains"):
        build(part)
    extend_path(stored)
    open_parts(stored)
    assert imported() == [PARTS[setting][0]]
    made = build(part)
    assert type(made).__name__ == PARTS[setting][1]
    assert made.config.model_dump() == PARTS[setting][3]


@pytest.mark.parametrize("setting", PARTS)
def test_an_installed_part_goes_by_its_name(tmp_path, monkeypatch, setting):
    monkeypatch.syspath_prepend(outside.install(tmp_path))
    name = f"my-{setting.rpartition('.')[2]}"
    config = load_recipe(RECIPE, [f"{setting}.type={name}"])
    assert imported() == []
    open_parts(config)
    (part,) = outside_parts(config)
    assert (part.type, imported()) == (name, [PARTS[setting][0]])


@pytest.mark.parametrize("setting", PARTS)
def test_a_name_that_nobody_installs_is_refused_with_the_nearest_and_kept_in_a_stored_run(tmp_path, setting):
    outside.install(tmp_path)
    name = f"my-{setting.rpartition('.')[2]}"
    with pytest.raises(ConfigError, match=rf"{setting}\.type = '{name}': choose one of '.*, or write package.module:C"):
        load_recipe(RECIPE, [f"{setting}.type={name}"])
    settings = load_recipe(RECIPE, [f"{setting}.type=gone.away:{PARTS[setting][1]}"]).model_dump(mode="json")
    section = settings
    for key in setting.split("."):
        section = section[key]
    section["type"] = name
    stored = validate(settings, "stored")
    assert [part.type for part in outside_parts(stored)] == [name]
    with pytest.raises(ConfigError, match=f"{setting}.type = '{name}': no installed package has this part: install"):
        open_parts(stored)


def test_a_typing_error_names_the_nearest_installed_part_too(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(outside.install(tmp_path))
    for wrong, near in {"gea": "gae", "my-advantag": "my-advantage"}.items():
        with pytest.raises(ConfigError, match=rf"advantage.type = '{wrong}'.* Did you mean '{near}'\?$"):
            load_recipe(RECIPE, [f"update.advantage.type={wrong}"])


@pytest.mark.parametrize("kind", ["7a:B", "a:", "a b:C", ":", "outside"])
def test_what_is_no_import_path_is_no_part(kind):
    with pytest.raises(ConfigError, match=r"choose one of 'grpo', .*, or write package.module:Class"):
        load_recipe(RECIPE, [f"update.advantage={{type: '{kind}'}}"])


def test_a_built_in_part_is_never_replaced_by_an_installed_one(tmp_path, monkeypatch):
    outside.install(tmp_path)
    points = tmp_path / "my_parts-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("my-advantage", "grpo"))
    monkeypatch.syspath_prepend(tmp_path)
    assert list(outside_parts(load_recipe(RECIPE))) == []


BROKEN = {
    "raises when imported": (
        "raise RuntimeError('no\\nluck')",
        "update.advantage.type = 'my_part:P': my_part raises RuntimeError: no luck when imported; mend it",
    ),
    "needs what is absent, in lines": (
        "raise ImportError('no\\nlibrary')",
        "my_part cannot be imported (no library); install",
    ),
    "exits when imported": ("raise SystemExit(3)", "my_part raises SystemExit: 3 when imported; mend it"),
    "needs what is absent": ("import my_nothing", "my_part cannot be imported (No module named 'my_nothing'); install"),
    "is no Python": ("class P(:", "line 1: invalid syntax: mend the module"),
    "has no such class": ("import coevo\nclass Part: pass", "my_part has no P"),
    "is a function": ("def P(): pass", "is no part; name a class derived from coevo.AdvantagePart"),
    "derives from nothing": ("class P: pass", "is no part; name a class derived from coevo.AdvantagePart"),
    "is of another kind": (
        "import coevo\nclass P(coevo.WriterPart):\n    def write(self, evidence): pass",
        "is a part of bank.writer; name a class derived from coevo.AdvantagePart",
    ),
    "lacks a method": ("import coevo\nclass P(coevo.AdvantagePart): pass", "it lacks advantages; implement it"),
    "has other settings": (
        "import coevo\nclass P(coevo.AdvantagePart):\n    Config = dict\n    def advantages(self, t): pass",
        "its Config is no class of settings; derive it from coevo.Config",
    ),
    "states nonsense": (
        "import coevo\nclass P(coevo.AdvantagePart):\n    grouped = 'yes'\n    def advantages(self, t): pass",
        "its grouped is 'yes'; make it bool",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_part_that_cannot_be_used_is_one_line_that_says_what_would_be_right(tmp_path, fault):
    text, says = BROKEN[fault]
    (tmp_path / "my_part.py").write_text(text)
    assert says in refused(tmp_path, ["update.advantage.type=my_part:P"])


def test_a_module_that_is_not_there_names_the_ways_to_it(tmp_path):
    said = refused(tmp_path, ["bank.writer.type=my_absent:W"])
    assert said == (
        "bank.writer.type = 'my_absent:W': my_absent cannot be imported (No module named 'my_absent'); install its "
        "package, or name the folder of a module of your own in python_path"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("{scal: 1.0}", "update.advantage.options: scal: no such key. Did you mean 'scale'?"),
        ("{scale: much}", 'update.advantage.options: scale = "much": Input should be a valid number'),
    ],
)
def test_options_are_checked_by_the_settings_of_the_part(tmp_path, options, says):
    outside.write(tmp_path)
    assert refused(tmp_path, [f"update.advantage={{type: 'my_rank:Rank', options: {options}}}"]).startswith(says)


def test_a_constructor_that_refuses_its_options_is_one_line(tmp_path):
    (tmp_path / "my_part.py").write_text(
        "import coevo\nclass P(coevo.AdmissionPart):\n"
        "    def __init__(self, config): raise ValueError('never\\never')\n"
        "    def decide(self, *arguments): pass\n"
    )
    (part,) = outside_parts(opened(tmp_path, ["bank.admission.type=my_part:P"]))
    with pytest.raises(ConfigError, match=r"^bank.admission.type = 'my_part:P': refuses options=\{\}: never ever$"):
        build(part)


STATED = {
    "compares alone": ("update.advantage", "Rank", "", ["rollout.group_size=1"], "gives my_rank:Rank no group to comp"),
    "needs a critic": ("update.advantage", "Rank", "needs_critic = True", [], "needs values: set update.critic={}"),
    "needs no critic": ("update.advantage", "Rank", "", ["update.critic={}"], "does not use a critic"),
    "needs whole episodes": (
        "update.reward",
        "Brief",
        "whole = True",
        [
            "rollout.turns=4",
            "rollout.group_size=1",
            "update.advantage={type: gae}",
            "update.critic={}",
        ],
        "update.reward.type=my_reward:Brief needs whole ones",
    ),
    "edits": ("bank.writer", "Feedback", "edits = True", [], "proposes operations, but admission.type=replay cannot"),
    "does not score": ("bank.writer", "Feedback", "", ["bank.admission={type: score}"], "does not score entries"),
    "does not reflect": ("bank.writer", "Feedback", "", ["evaluation.reflections=4"], "needs a reflecting writer"),
    "carries out": (
        "bank.admission",
        "First",
        "edits = True",
        [],
        "applies operations, but writer.type=quote",
    ),
}


@pytest.mark.parametrize("case", STATED)
def test_what_a_class_states_of_itself_is_checked_when_it_is_open_and_not_before(tmp_path, case):
    setting, name, statement, more, says = STATED[case]
    module = tmp_path / f"{PARTS[setting][0]}.py"
    text = PARTS[setting][2].replace("whole = False", "") if statement.startswith("whole") else PARTS[setting][2]
    module.write_text(text.replace("    class Config", f"    {statement}\n\n    class Config", 1))
    settings = [f"{setting}.type={module.stem}:{name}", *more]
    load_recipe(RECIPE, settings)
    assert says in refused(tmp_path, settings)


def test_a_writer_reflects_if_its_class_has_the_method(tmp_path):
    outside.write(tmp_path)
    with (tmp_path / "my_writer.py").open("a") as file:
        file.write("\n    def reflect(self, episodes, references, ask):\n        return []\n")
    opened(tmp_path, ["bank.writer.type=my_writer:Feedback", "evaluation.reflections=4"])


def test_only_the_sections_that_are_needed_are_imported(tmp_path):
    config = load_recipe(RECIPE, outside.settings(outside.write(tmp_path)))
    extend_path(config)
    open_parts(config, "bank.retrieval")
    assert imported() == ["my_retrieval"]


def test_settings_of_a_section_stay_beside_the_options_of_a_retrieval(tmp_path):
    settings = ["bank.retrieval.type=my_retrieval:Shared", "bank.retrieval.k=2", "bank.retrieval.general=1"]
    config = opened(outside.write(tmp_path), settings)
    assert (config.bank.retrieval.k, config.bank.retrieval.general, config.bank.retrieval.scoped) == (2, 1, True)


def test_another_type_forgets_the_options_of_the_old_one(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"defaults: [recipes/{RECIPE}]\nupdate: {{advantage: {{type: 'my_rank:Rank', options: {{scale: 2}}}}}}\n"
    )
    assert load_recipe(str(recipe)).update.advantage.options == {"scale": 2}
    assert load_recipe(str(recipe), ["update.advantage.type=my_other:Rank"]).update.advantage.options == {}
    assert load_recipe(str(recipe), ["update.advantage.type=grpo"]).update.advantage.type == "grpo"


def test_no_digest_of_a_built_in_part_has_changed():
    config = load_recipe(RECIPE)
    assert RunConfig.model_validate(config.model_dump(), strict=False).digest() == config.digest()
    assert "options" not in config.model_dump()["update"]["advantage"]
    assert "my_rank" not in sys.modules
