"""Recipes merge in order, and every mistake is one line that names it."""

import pytest

from configs.errors import ConfigError
from configs.load import load_recipe, names

RECIPE = "homerules-coevo-rl"


@pytest.mark.parametrize("recipe", names("recipes"))
def test_every_shipped_recipe_is_valid(recipe):
    assert load_recipe(recipe).recipe == recipe


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
        ("rollout.group_size=1", "set it to 2 or more"),
        ("rollout.sampling.top_p=0.5", "set rollout.sampling.top_p=1.0"),
        ("context.style=chat", "needs a pretrained policy"),
        ("env.level=3", "level = 3: Input should be 1 or 2"),
        ("env.type=../x", "env"),
        ("update.advantage.type=gae", "needs values: set critic"),
        ("seed", "key=value"),
        ("seed=[1", "not readable as key=value"),
        ("update.optimizer.lr=.nan", "lr"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(override, says):
    with pytest.raises(ConfigError) as caught:
        load_recipe(RECIPE, [override])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_to_learn_is_refused():
    with pytest.raises(ConfigError, match="nothing to learn"):
        load_recipe(RECIPE, ["bank=null", "update=null"])


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "defaults: [methods/none]\n", "\x00"])
def test_an_unreadable_recipe_file_is_one_line(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_recipe(str(path))
    assert "\n" not in str(caught.value)


def test_missing_recipe_names_those_there_are():
    with pytest.raises(ConfigError, match=RECIPE):
        load_recipe("nope")


def test_digest_ignores_only_the_length_of_the_run():
    base = load_recipe(RECIPE).digest()
    assert load_recipe(RECIPE, ["iterations=3"]).digest() == base
    assert load_recipe(RECIPE, ["seed=3"]).digest() != base


def test_every_field_is_documented():
    def fields(model):
        for name, field in model.model_fields.items():
            yield f"{model.__name__}.{name}", field

    from configs import bank, base, context, env, policy, rollout, run, update

    modules = (bank, context, env, policy, rollout, run, update)
    models = {v for m in modules for v in vars(m).values() if isinstance(v, type) and issubclass(v, base.Config)}
    missing = [name for model in models for name, field in fields(model) if not field.description]
    assert not missing
