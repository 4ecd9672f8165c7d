"""Recipes merge in order, and every mistake is one line that names it."""

import re
from importlib import import_module
from pathlib import Path

import griffe
import pytest
from support.refusal import refusal

import coevo
from coevo.configs.load.load import SourceError, check, load_method, load_recipe, validate
from coevo.configs.load.shipped_files import names

RECIPE = "homerules-coevo-rl"


@pytest.mark.parametrize("recipe", names("recipes"))
def test_every_shipped_recipe_is_valid_and_its_critic_takes_several_steps_an_update(recipe):
    """With one step an update a critic has learned little of what it could after ten updates."""
    config = load_recipe(recipe)
    assert config.recipe == recipe
    if config.update is not None and config.update.critic is not None:
        assert config.update.critic.optimizer.minibatches * config.update.critic.optimizer.epochs >= 8


def test_recipe_wins_over_method_and_command_line_over_both():
    assert load_recipe(RECIPE).bank.retrieval.k == 4
    assert load_recipe(RECIPE, ["bank.retrieval.k=5"]).bank.retrieval.k == 5


def test_a_file_may_build_on_shipped_files(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [recipes/homerules-coevo-rl]\niterations: 2\n")
    config = load_recipe(str(path))
    assert (config.recipe, config.iterations, config.bank.every) == ("mine", 2, 1)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("sed=1", "sed: no such key"),
        ("update.optimizer.learning_rate=1", "update.optimizer.learning_rate: no such key"),
        ("seed=x", 'seed = "x": Input should be a valid integer'),
        ("iterations=true", "iterations = true: Input should be a valid integer"),
        ("env.level=3", "level = 3: Input should be 1 or 2"),
        ("env.type=../x", "env"),
        ("update.advantage.type=gea", "update.advantage.type = 'gea': choose one of 'grpo'"),
        ("update.advantage.gamma=0.9", "no such key"),
        ("update.loss.dual_clip=1.0", "greater than 1"),
        ("update.reward.gamma=0.9", "say which kind it is with update.reward.type"),
        ("bank.writer.type=none", "bank.writer.type = 'none': choose one of 'quote-contrast'"),
        ("seed", "key=value"),
        ("=1", "an override is written key=value"),
        ("seed=[1", "not readable as key=value"),
        ("update.optimizer.lr=.nan", "lr = NaN: Input should be a finite number"),
        ("env.type=???", "has ??? in place of a value: write one, or leave the key out"),
        ("bank=[]", "bank = []: Input should be an object"),
        ("evaluation.panels.a=1", 'evaluation.panels = {"a": 1}: Input should be a valid array'),
        ("evaluation.panels[0]=x", "set a list as a whole"),
        ("[=1", "name a setting by its keys, as in env.level=2"),
        pytest.param(f"{'.'.join('a' * 500)}=1", "name a setting by its keys, as in env.level=2", id="500 keys"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(override, says):
    assert says in refusal(RECIPE, [override])


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["seed=x"], 'seed = "x": Input should be a valid integer'),
        (
            ["iterations=x", "seed=x"],
            'seed = "x": Input should be a valid integer; iterations = "x": Input should be a valid integer',
        ),
        (
            ["seed=x", "iterations=x", "recip=x"],
            "recip: no such key. Did you mean 'recipe'?; seed = \"x\": Input should be a valid integer; "
            'iterations = "x": Input should be a valid integer',
        ),
        (["evaluation.retrieval=3"], "evaluation.retrieval = 3: Input should be a valid boolean"),
        (["evaluation.every=0"], "evaluation.every = 0: Input should be greater than or equal to 1"),
        # a value is shown by 80 characters, a key by 320
        ([f"seed={'x' * 100}"], f'seed = "{"x" * 79}: Input should be a valid integer'),
        ([f"{'k' * 320}=1"], f"{'k' * 320}: no such key; its section has: "),
        ([f"{'k' * 321}=1"], f"{'k' * 320}...: no such key; its section has: "),
    ],
    ids=lambda each: str(each)[:40],
)
def test_mistakes_are_listed_with_misspelt_keys_first(overrides, says):
    said = refusal(RECIPE, overrides).removeprefix(f"{RECIPE}: ")
    assert said == says or (says.endswith(": ") and said.startswith(says))


def test_five_mistakes_are_listed_and_the_others_are_counted():
    said = refusal(RECIPE, [f"{letter * 3}=1" for letter in "qvwxyzj"])
    assert said.count(": no such key") == 5
    assert said.endswith(" (and 2 more)")


@pytest.mark.parametrize(
    ("written", "shown"),
    [("models/scratch", "models/scratch"), ("scratch", "models/scratch"), ("${seed}", "models/scratch")],
)
def test_a_base_that_is_no_list_is_shown_as_one(tmp_path, written, shown):
    path = tmp_path / "mine.yaml"
    path.write_text(f"defaults: {written}\n")
    assert refusal(str(path)).endswith(f"defaults = {written!r}: write a list: defaults: [{shown}]")


@pytest.mark.parametrize("text", ["5", '"defaults: [recipes/homerules-coevo-rl]"', "[a]"])
def test_a_file_that_holds_no_mapping_is_not_read_any_further(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(f"{text}\n")
    assert refusal(str(path)).endswith(": a recipe is a mapping of keys to values")


@pytest.mark.parametrize("override", ["iterations = 3", "iterations =3", " iterations=3"])
def test_spaces_around_the_sign_are_named(override):
    assert refusal(RECIPE, [override]) == f"{override!r}: leave out the spaces around =: iterations=3"


@pytest.mark.parametrize(("length", "shown"), [(78, f"'{'x' * 78}'"), (79, f"'{'x' * 79}...")])
def test_an_override_without_a_value_is_shown_by_80_characters(length, shown):
    assert refusal(RECIPE, ["x" * length]) == f"{shown}: an override is written key=value, for example seed=11"


def test_a_setting_that_is_no_interpolation_is_named_before_the_reason(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("seed: ${\n")
    said = refusal(str(path))
    assert re.search(r"not readable as YAML: seed: \w", said)
    assert not {"full_key", "object_type"} & set(re.findall(r"\w+", said))


def test_a_method_that_sets_no_iterations_has_a_thousand():
    assert {name: load_method(name).iterations for name in ("grpo", "react")} == {"grpo": 1000, "react": 0}


def test_context_lite_has_the_papers_values():
    config = load_recipe("homerules-context-lite")
    advantage = config.update.advantage
    assert (advantage.gamma_step, advantage.lambda_step) == (0.99, 0.95)
    assert (advantage.gamma_token, advantage.lambda_token) == (1.0, 1.0)
    assert (config.context.memory_length, config.rollout.group_size, config.bank) == (1, 1, None)
    assert config.rollout.turns < 5


def test_a_run_that_waits_is_written_as_it_was_before_any_played_ahead():
    waits = load_recipe("homerules-grpo")
    ahead = load_recipe("homerules-grpo", ["rollout.ahead=1", "update.loss.importance_cap=2.0"])
    assert "ahead" not in waits.model_dump(mode="json")["rollout"]
    assert ahead.model_dump(mode="json")["rollout"]["ahead"] == 1
    assert waits.digest() == load_recipe("homerules-grpo", ["rollout.ahead=0"]).digest() != ahead.digest()


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "defaults: [methods/none]\n", "\x00"])
def test_an_unreadable_recipe_file_is_one_line(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    refusal(str(path))


def test_extra_lessons_are_part_of_a_run_only_where_there_are_any():
    none, some = (load_recipe(RECIPE, [f"env.extra_lessons={extra}"]) for extra in (0, 2))
    assert none.digest() == load_recipe(RECIPE).digest() != some.digest()
    assert "extra_lessons" not in none.model_dump_json()
    assert validate(some.model_dump(mode="json"), "kept") == some


def test_digest_ignores_only_the_length_of_the_run():
    base = load_recipe(RECIPE).digest()
    assert load_recipe(RECIPE, ["iterations=3"]).digest() == base
    assert load_recipe(RECIPE, ["seed=3"]).digest() != base


def test_every_setting_is_documented():
    """Pydantic does not read these docstrings, which would take a third of the time to import the schema."""
    package = griffe.load("coevo.configs", search_paths=[Path(coevo.__file__).parents[1]])
    settings = [
        owner[name]
        for owner in _classes(package)
        for name in getattr(_imported(owner), "model_fields", ())
        if name in owner.members
    ]
    assert len(settings) > 250
    assert not [each.path for each in settings if each.docstring is None]


def _classes(owner):
    for each in owner.members.values():
        if not each.is_alias and (each.is_module or each.is_class):
            yield from (each,) if each.is_class else ()
            yield from _classes(each)


def _imported(owner):
    return getattr(import_module(owner.module.path), owner.name)


def nested(levels):
    return f"{'[' * levels}1{']' * levels}"


def aliased(inner, outer):
    """A value inside ``inner`` lists, repeated inside ``outer`` others: 1 + outer + inner levels above it."""
    return f"[&a {nested(inner)}, {'[' * outer}*a{']' * outer}]"


def repeated(more):
    """A list of a list of 50 values, 97 aliases of it, and others: 1 + 98 x 51 + more values."""
    return f"[&a [{', '.join('1' * 50)}], {', '.join(['*a'] * 97)}, {', '.join('1' * more)}]"


BOUNDS = {
    "characters": ("#" * 32_768, "#" * 32_769, "has more than 32768 characters: keep to what the schema has"),
    "characters of a value": ("x" * 1000, "x" * 1001, "line 1: is longer than 1000 characters: shorten it"),
    "levels": (nested(20), nested(21), "line 1: is nested more than 20 levels deep: write it flatter"),
    "levels of an alias": (aliased(10, 9), aliased(10, 10), "line 1: is nested more than 20 levels deep, or contains"),
    "values": (repeated(1), repeated(2), "line 1: holds more than 5000 values: write fewer, or without aliases"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_so_much_is_read_and_no_more(name):
    most, more, says = BOUNDS[name]
    check(most)
    with pytest.raises(SourceError) as refused:
        check(more)
    assert str(refused.value).startswith(says)


PLAIN = ("", "a:\r\n  - b\r\n", "a: |\n  two\n  lines\n", "a: 1  #\tb", "<<: {a: 1}", "=: 1", "'1': x", "a: 2020-01-01")


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_read(text):
    check(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: \x07", "line 2: holds an unprintable character: remove it"),
        ('a: 1\nb: "\\a"', "line 2: holds an unprintable character: remove it"),
        ("1: x", "line 1: has a key that is no text: write the name of a setting"),
        ("a: 1\n[b]: x", "line 2: has a key that is no text"),
        ("a: {~: x}", "line 1: has a key that is no text"),
        ("\na: !!python/object:os.system x", "line 2: has the tag tag:yaml.org,2002:python/object:os.system: write a"),
        ("a: !mine x", "line 1: has the tag !mine: write a plain value"),
        ("a: [", "not readable as YAML: "),
    ],
)
def test_the_line_is_named(text, says):
    with pytest.raises(SourceError) as refused:
        check(text)
    assert str(refused.value).startswith(says)
