"""A pairing is its environment, its method at the paper's values, and its model, on the machine that it runs on."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coevo.configs.load.load import load_method, shipped_settings
from coevo.configs.load.pairing import Pairing, load_pairing, parts_of
from coevo.configs.load.shipped_files import names
from coevo.utilities.errors import ConfigError

FROZEN = ("experience-only", "memrl-style", "react", "reflexion-style")


def four():
    return 4


def none():
    return 0


def never():
    raise AssertionError("only a pretrained policy is placed on GPUs")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "My_Model..v2").mkdir()
    return tmp_path / "My_Model..v2"


EVERY = [("homerules", model) for model in names("models")]
EVERY += [(env, model) for env in names("envs") if env != "homerules" for model in ("scratch", "qwen2.5-7b")]


@pytest.mark.parametrize(("env", "model"), EVERY)
def test_every_shipped_pairing_composes_or_says_what_would(env, model):
    for method in names("methods"):
        if model == "endpoint" and method not in FROZEN:
            with pytest.raises(ConfigError, match=f"--method {method} trains weights.*choose one of {FROZEN[0]}"):
                load_pairing(Pairing(env, method, model))
            continue
        for gpus in (none, four):
            config = load_pairing(Pairing(env, method, model), (), gpus)
            assert parts_of(config.recipe) == (env, method, model)
            assert config.env.type == shipped_settings(f"envs/{env}")["env"]["type"]


SCALE = {"recipe", "iterations", "evaluation", "context", "policy", "warmstart", "env"}


@pytest.mark.parametrize("method", names("methods"))
def test_a_small_policy_has_the_values_of_the_methods_file(method):
    """In an environment of which the paper has no values of its own."""
    plain, paired = load_method(method), load_pairing(Pairing("homerules", method, "scratch"), (), never)
    assert paired.model_dump(exclude=SCALE) == plain.model_dump(exclude=SCALE)
    assert (paired.context, paired.policy, paired.env) == (plain.context, plain.policy, plain.env)


# JERP's Table I, RetroAgent's Table 10, SLEA-RL's appendix D, section 4.1 of the others.
PAPER = [
    (
        "webshop",
        "jerp",
        {"iterations": 300, "rollout.tasks": 8, "rollout.max_turns": 15, "policy.lora.r": 64},
    ),
    ("homerules", "jerp", {"rollout.tasks": 32, "rollout.max_turns": 50, "bank.writer.type": "model-editor"}),
    ("webshop", "retroagent", {"iterations": 150, "evaluation.every": 5, "evaluation.tasks": 128}),
    ("sokoban", "retroagent", {"iterations": 300, "rollout.sampling.max_new_tokens": 2048}),
    ("minesweeper", "retroagent", {"iterations": 300, "rollout.sampling.temperature": 0.4}),
    ("webshop", "slea-rl", {"context.experience_tokens": 200, "bank.writer.type": "model-extremes"}),
    ("webshop", "slea-rl", {"rollout.group_size": 8, "context.placement": "system", "context.style": "chat"}),
    ("webshop", "coevo-rl", {"bank.every": 20, "bank.writer.type": "model-contrast", "context.memory_length": None}),
    ("babyai", "context-lite", {"evaluation.tasks": 96, "context.memory_length": 1, "context.history": "states"}),
    ("webshop", "grpo", {"bank": None, "rollout.sampling.max_new_tokens": 512, "context.style": "conversation"}),
]


@pytest.mark.parametrize(("env", "method", "values"), PAPER)
@pytest.mark.parametrize("gpus", [none, four])
def test_a_pretrained_policy_has_the_papers_values_in_an_environment(env, method, values, gpus):
    config = load_pairing(Pairing(env, method, "qwen2.5-7b"), (), gpus).model_dump()
    for name, value in values.items():
        found = config
        for part in name.split("."):
            found = found[part]
        assert found == value, name


def test_settings_of_the_user_win_over_all(folder):
    given_settings = ["bank.writer.type=quote-extremes", "rollout.engine.type=transformers", "placement=null",
                      "update.deepspeed={device: cpu, processes: 1}", "env.products=200", "iterations=3"]  # fmt: skip
    config = load_pairing(Pairing("webshop", "slea-rl", str(folder)), given_settings, four)
    assert config.bank.writer.type == "quote-extremes"
    assert (config.rollout.engine.type, config.placement, config.iterations) == ("transformers", None, 3)
    assert (config.env.products, config.policy.path) == (200, str(folder))


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_pretrained_policy_generates_and_trains_on_every_gpu(folder, count):
    config = load_pairing(Pairing("webshop", "grpo", str(folder)), (), lambda: count)
    assert config.rollout.engine.devices == tuple(map(str, range(count)))
    assert (config.update.deepspeed.device, config.update.deepspeed.processes) == ("cuda", count)
    assert (config.placement.type, config.policy.dtype) == ("shared", "bfloat16")
    frozen = load_pairing(Pairing("webshop", "react", str(folder)), (), lambda: count)
    assert (len(frozen.rollout.engine.devices), frozen.update, frozen.placement) == (count, None, None)
    alone = load_pairing(Pairing("webshop", "grpo", str(folder)), (), none)
    assert (alone.rollout.engine.type, alone.placement, alone.update.deepspeed.device) == ("transformers", None, "cpu")


def test_a_name_of_the_hub_has_the_sizes_of_the_shipped_model_of_that_name():
    shipped, named = (load_pairing(Pairing("webshop", "grpo", each)) for each in ("qwen3-8b", "Qwen/Qwen3-8B"))
    assert (named.recipe, shipped.recipe) == ("webshop_grpo_Qwen3-8B", "webshop_grpo_qwen3-8b")
    assert named.policy == shipped.policy
    assert load_pairing(Pairing("webshop", "grpo", "some/Other")).policy.shape is None


def test_an_endpoint_is_named_by_the_model_that_it_serves():
    asked = Pairing("webshop", "memrl-style", "http://127.0.0.1:9/v1")
    config = load_pairing(asked, ["policy.model=org/gpt-x"], never)
    assert (config.policy.url, config.policy.model) == ("http://127.0.0.1:9/v1", "org/gpt-x")
    assert config.recipe == "webshop_memrl-style_gpt-x"
    with pytest.raises(ConfigError, match=r"say which model it serves: policy\.model=NAME"):
        load_pairing(asked)


@pytest.mark.parametrize(
    ("pairing", "says"),
    [
        (Pairing("webshp", "grpo", "scratch"), "No environment 'webshp'. Did you mean 'webshop'?"),
        (Pairing("webshop", "memrl", "scratch"), "No method 'memrl'. Did you mean 'memrl-style'?"),
        (Pairing("webshop", "grpo", "qwen3-8"), "No model 'qwen3-8'. Did you mean 'qwen3-8b'?"),
        (Pairing("webshop", "grpo", "./nowhere"), "--model ./nowhere: no such directory"),
        (Pairing("webshop", "grpo", "http://127.0.0.1:9/v1"), "trains weights"),
    ],
)
def test_an_unknown_name_is_one_line_with_the_nearest(pairing, says):
    with pytest.raises(ConfigError) as error:
        load_pairing(pairing)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_environments_of_other_packages_are_paired_by_name_or_class(folder):
    named = load_pairing(Pairing("shelves", "grpo", str(folder)), registered=["shelves"])
    assert (named.env.type, named.recipe) == ("shelves", "shelves_grpo_My-Model-v2")
    written = load_pairing(Pairing("a_package.rooms:Rooms", "grpo", str(folder)))
    assert (written.env.type, written.recipe) == ("a_package.rooms:Rooms", "a-package.rooms-Rooms_grpo_My-Model-v2")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=80))
def test_a_directory_of_any_name_makes_a_name_of_a_run(tmp_path, name):
    """Its three parts stay apart, whatever the directory is called."""
    directory = tmp_path / f"model {name}"
    try:
        directory.mkdir(exist_ok=True)
    except OSError:  # too long for the file system
        return
    config = load_pairing(Pairing("webshop", "grpo", str(directory)))
    assert parts_of(config.recipe)[:2] == ("webshop", "grpo")


@pytest.mark.parametrize("recipe", [*names("recipes"), "a_b", "a_b_c", "a_grpo_c_d", ""])
def test_no_other_recipe_is_taken_for_a_pairing(recipe):
    assert parts_of(recipe) is None
