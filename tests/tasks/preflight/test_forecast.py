"""Before a start: prompts at their longest, memory beside that of the machine, and settings that would fit."""

from dataclasses import replace
from functools import cache

import pytest
from support.policies import WORDS, qwen

from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.envs.registry import make
from coevo.models.capacity.devices import GIB, KNOWN, Device, Machine, here, named
from coevo.models.policy.policy import save
from coevo.models.policy.tokenizers import Guess, tokenizer_of
from coevo.tasks.preflight.forecast import check_fits, cut_short, forecast, lengths_of
from coevo.tasks.preflight.memory import needs
from coevo.tasks.preflight.rehearse import TASKS, TURNS, glance, rehearse
from coevo.utilities.errors import CoevoError

SMALL = "homerules-coevo-rl"
MEANT_FOR = {
    "homerules-coevo-rl-qwen3-8b": "4xa100-80",
    "homerules-coevo-rl-qwen3-0.6b": "1xa100-80",
    "homerules-coevo-rl-qwen3-4b": "1xa100-80",
    "homerules-coevo-rl-qwen3-8b-lora": "1xa100-80",
    "babyai-coevo-rl-qwen3-0.6b": "1xa100-80",
    "babyai-coevo-rl-qwen3-4b": "1xa100-80",
    "babyai-coevo-rl-qwen3-8b-lora": "1xa100-80",
    "homerules-slea-rl-qwen2.5-7b": "4xa100-80",
    "homerules-slea-rl-qwen2.5-1.5b": "1xa100-80",
    "homerules-retroagent-qwen2.5-7b": "4xh200",
    "homerules-retroagent-trained-qwen2.5-7b": "4xh200",
    "homerules-jerp-qwen2.5-7b": "2xa100-80",
    "babyai-context-lite-qwen2.5-3b": "4xa100-80",
    "textworld-coevo-rl": "1xa100-80",
}
"""The machine that a recipe's first line promises."""
SLOW = ("textworld-coevo-rl",)
"""Recipes whose environment has to make its games first."""
LAPTOP = Machine((), Device("cpu", 8 * GIB, 1e11, 2e10))


def foreseen(recipe, machine=LAPTOP, overrides=()):
    return forecast(load_recipe(recipe, overrides), rehearsed(recipe, *overrides), machine)


@cache
def rehearsed(recipe, *overrides):
    config = load_recipe(recipe, overrides)
    return rehearse(briefly(config), make(config.env))


def briefly(config):
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"tasks": 4})})


def test_every_recipe_at_full_scale_is_promised_a_machine():
    recipes = {name: load_recipe(name) for name in names("recipes")}
    large = {name for name, each in recipes.items() if each.policy.type == "pretrained"}
    small = {"rows-coevo-rl-qwen3-0.6b", "rows-grpo-qwen3-0.6b", "textworld-coevo-rl-qwen3-0.6b"}
    assert set(MEANT_FOR) == large - small, "which need no GPU"


@pytest.mark.full
def test_the_recipe_without_a_gpu_fits_the_machine_it_names():
    found = foreseen("textworld-coevo-rl-qwen3-0.6b", Machine((), Device("cpu", 23.5 * GIB, 1e11, 2e10)))
    assert all(need.fits for need in found.needs)


@pytest.mark.parametrize(
    ("recipe", "machine"),
    [pytest.param(*each, marks=[pytest.mark.full] * (each[0] in SLOW)) for each in MEANT_FOR.items()],
)
def test_a_recipe_at_full_scale_fits_the_machine_it_names(recipe, machine):
    found = foreseen(recipe, named(machine))
    assert found.problems == ()
    assert all(need.fits for need in found.needs)
    config = load_recipe(recipe)
    steps = {"rollout", "update", "save", "evaluation"} | ({"sync"} if config.rollout.engine.type == "vllm" else set())
    replays = config.bank is not None and config.bank.admission.type == "replay"
    asks = config.bank is not None and config.bank.writer.type.startswith("model-")
    assert set(found.seconds) == steps | ({"judging"} if replays else set()) | ({"writing"} if asks else set())
    assert found.rehearsal.guessed


@pytest.mark.parametrize("recipe", [SMALL, "homerules-ppo", "babyai-grpo"])
def test_a_recipe_of_a_laptop_fits_one(recipe):
    found = foreseen(recipe)
    assert found.problems == ()
    (memory,) = found.needs
    assert 3 < memory.bytes / GIB < 6


def test_what_cannot_fit_says_what_lacks_and_a_setting_that_helps():
    recipe, machine = "homerules-coevo-rl-qwen3-8b", named("4xa100-80")
    (said,) = foreseen(recipe, machine, ["update.deepspeed.tokens=65536"]).problems
    assert said.startswith("each GPU of the update has 75.0 GiB, and 87.1 are needed (activations 41.4, ")
    helps = "update.deepspeed.tokens=8192"
    assert said.endswith(f": set {helps}")
    assert foreseen(recipe, machine, [helps]).problems == ()


def test_where_no_setting_helps_a_machine_is_named_that_does():
    (said,) = foreseen("homerules-coevo-rl-qwen3-8b").problems
    assert "takes 4 GPUs, and there are none here" in said
    assert said.endswith("are none here: take a machine such as 4xa100-80")  # a smaller model needs a GPU, too


def test_a_policy_of_billions_is_refused_on_a_laptop_before_it_starts(tmp_path):
    overrides = ["policy.hidden_size=4096", "policy.layers=36", "policy.heads=32", "policy.kv_heads=8"]
    wide = [*overrides, "policy.head_dim=128", "policy.intermediate_size=12288"]
    config = load_recipe(SMALL, wide)
    (said,) = forecast(config, glance(config, make(config.env)), LAPTOP).problems
    assert said.startswith("the machine's memory has 8.0 GiB, and ")
    with pytest.raises(CoevoError, match=r"the machine's memory has .* are needed") as caught:
        check_fits(load_recipe(SMALL, [*wide, "policy.layers=400"]), make(config.env), tmp_path)
    assert "\n" not in str(caught.value)


def test_sharing_a_gpu_without_taking_turns_is_refused():
    crowded = ["rollout.engine.gpu_memory_utilization=0.9", "placement=null", "update.deepspeed.tokens=65536"]
    (said,) = foreseen("homerules-slea-rl-qwen2.5-1.5b", named("1xa100-80"), crowded).problems
    assert "each GPU of the update" in said
    assert said.endswith(": set 'placement={type: shared}' rollout.engine.gpu_memory_utilization=0.4")


def test_what_a_sleeping_server_keeps_is_counted():
    recipe, machine = "homerules-coevo-rl-qwen3-8b", named("4xa100-80")

    def kept(*overrides):
        (host,) = (need for need in foreseen(recipe, machine, overrides).needs if need.where == "the machine's memory")
        return next(item.bytes for item in host.parts if item.what == "servers")

    assert kept("placement.sleep=1") > kept()
    assert kept("policy.lora={r: 8, alpha: 8}") == kept("placement.sleep=1", "policy.lora={r: 8, alpha: 8}")


def test_each_process_of_gpus_loads_the_whole_policy_into_host_memory_first():
    forecast_of = foreseen("homerules-coevo-rl-qwen3-8b", named("4xa100-80"))
    (host,) = (need for need in forecast_of.needs if need.where == "the machine's memory")
    parts, policy = {item.what: item.bytes for item in host.parts}, 2 * forecast_of.shape.parameters
    assert (parts["update: the policy as it is loaded"], parts["probe"]) == (4 * policy, policy)
    assert host.bytes > 5 * policy


def test_separate_gpus_are_counted_apart():
    config = load_recipe("homerules-jerp-qwen2.5-7b")
    found = foreseen("homerules-jerp-qwen2.5-7b", named("2xa100-80"))
    assert not any("server" in item.what for item in found.needs[1].parts)
    assert found.needs[0].there == int(KNOWN["a100-80"].memory * config.rollout.engine.gpu_memory_utilization)
    assert "takes 2 GPUs" in foreseen("homerules-jerp-qwen2.5-7b", named("1xa100-80")).problems[0]


def test_prompts_that_do_not_fit_are_refused():
    (said,) = foreseen(SMALL, overrides=["policy.max_positions=224", "context.experience_tokens=190"]).problems
    assert "tokens, the policy attends to 224: lower context.experience_tokens" in said


def test_prompts_are_measured_with_a_full_block_of_lessons_and_a_full_window():
    config = load_recipe(SMALL)
    env = make(config.env)
    found = rehearse(config, env)
    bare = glance(config, env)
    assert found.tasks == TASKS + 4 * 192
    assert found.longest - found.shortest >= config.context.experience_tokens
    assert found.longest <= config.policy.max_positions
    assert len(found.turns) == TASKS * TURNS
    assert (bare.tasks, bare.turns, bare.words) == (found.tasks, found.turns, found.words)
    assert bare.longest == found.longest
    longer = config.context.model_copy(update={"memory_length": 8})
    assert rehearse(config.model_copy(update={"context": longer}), env).longest > found.longest


TALKING = ("homerules-coevo-rl-qwen3-0.6b", "1xa100-80")
"""A recipe of conversations, whose environment ends an episode after ten turns."""


@pytest.mark.parametrize("style", ["chat", "conversation"])
def test_a_conversation_is_measured_with_short_answers_and_with_the_longest(style):
    def measured(tokens):
        overrides = [f"rollout.sampling.max_new_tokens={tokens}", f"context.style={style}"]
        return foreseen(TALKING[0], named(TALKING[1]), overrides).rehearsal

    found, longer = measured(400), measured(500)
    assert found.longest == longer.longest
    assert longer.at_most - found.at_most == (style == "conversation") * 9 * 100
    assert found.at_most >= found.longest


def test_the_last_prompt_of_an_episode_does_not_grow_with_the_limit_of_the_run():
    def measured(most):
        return foreseen(TALKING[0], named(TALKING[1]), [f"rollout.max_turns={most}"]).rehearsal

    ten, fifty = measured(10), measured(50)
    assert ten.length == fifty.length == 10
    # Before the tenth turn there are nine; a full window has ten.
    assert ten.last == fifty.last < ten.longest < fifty.longest


def test_a_limit_of_the_run_that_ends_most_episodes_is_noticed():
    found = foreseen(TALKING[0], named(TALKING[1]), ["rollout.max_turns=8"])
    assert (found.rehearsal.cut, found.problems) == (1.0, ())
    assert found.notices[0] == (
        "rollout.max_turns=8 ended 100% of a random agent's episodes, not the environment: a task that takes more "
        "turns cannot succeed; raise it if some do"
    )
    assert foreseen(TALKING[0], named(TALKING[1])).rehearsal.cut == 0.0
    config = load_recipe(TALKING[0], [])
    assert (list(cut_short(config, 0.5)), len(list(cut_short(config, 0.51)))) == ([], 1)


def test_long_conversations_that_do_not_fit_are_noticed_and_not_refused():
    most = foreseen(TALKING[0], named(TALKING[1])).rehearsal.at_most
    room = [f"rollout.engine.max_model_len={most + 256}"]
    assert foreseen(TALKING[0], named(TALKING[1]), room).notices == ()
    found = foreseen(TALKING[0], named(TALKING[1]), [f"rollout.engine.max_model_len={most + 255}"])
    (said,) = found.notices
    assert f"come to {most} + 256, and rollout.engine.max_model_len attends to {most + 255}, where" in said
    assert found.problems == ()


def test_memory_that_long_conversations_lack_is_noticed_and_not_refused():
    overrides = ["rollout.engine={type: transformers, rows: 16}", "placement=null"]
    config, machine = load_recipe(TALKING[0], [*overrides, "rollout.sampling.max_new_tokens=512"]), named(TALKING[1])
    rehearsal = rehearse(briefly(config), make(config.env))
    found, lengths = forecast(config, rehearsal, machine), lengths_of(config, rehearsal)
    assert (found.notices, found.problems) == ((), ())
    longer = replace(lengths, longest=rehearsal.at_most)
    most = needs(config, machine, found.shape, longer)[-1].bytes
    tight = Machine(machine.gpus, replace(machine.host, memory=most - 1))
    found = forecast(config, rehearsal, tight)
    (said,) = found.notices
    assert said.startswith("if all answers of a conversation have 512 tokens, the machine's memory has ")
    assert found.problems == ()


def test_a_rehearsal_is_the_same_every_time():
    config = briefly(load_recipe("babyai-grpo"))
    assert rehearse(config, make(config.env)) == rehearse(config, make(config.env))


def test_a_tokenizer_on_this_machine_is_used_and_a_missing_one_guessed_upwards(tmp_path):
    save(qwen(), tmp_path)
    policy = load_recipe("homerules-coevo-rl-qwen3-8b").policy
    own = tokenizer_of(policy.model_copy(update={"path": str(tmp_path)}), ())
    assert own("go take use")["input_ids"] == own.convert_tokens_to_ids(list(WORDS[:3]))
    guess = tokenizer_of(policy, ())
    assert isinstance(guess, Guess)
    assert len(guess("Put the hot mug on the counter.")["input_ids"]) == 11


def test_machines_are_written_by_number_and_name():
    assert str(named("4xH200")) == "4 x H200 of 139 GiB, 800 GiB of memory"
    assert len(named("a30").gpus) == 1
    for wrong in ("", "4x", "0xh200", "4xtpu", "h200x4"):
        with pytest.raises(CoevoError, match="write 4xh200"):
            named(wrong)
    assert here().host.memory > GIB


def test_machines_elsewhere_are_compared_only_where_their_memory_is_said():
    for memory, fits in (("", True), (", gib: 20.0", False), (", gib: 80.0", True)):
        pools = f"pools: {{trainer: {{gpus: 1{memory}}}}}"
        overrides = ["update.deepspeed.processes=6", f"placement={{type: ray, {pools}}}"]
        config = load_recipe("homerules-coevo-rl-qwen3-8b", overrides)
        found = forecast(config, glance(config, make(config.env)), named("4xa100-80"))
        need = next(each for each in found.needs if each.where == "each GPU of the update")
        assert need.fits == fits
        (host,) = (each for each in found.needs if each.where == "the machine's memory")
        assert not [part.what for part in host.parts if part.what.startswith("update")]
        lengths = lengths_of(config, found.rehearsal)
        assert needs(config, named("4xa100-80"), found.shape, lengths)


def test_a_lost_episode_does_not_refuse_a_rehearsal(monkeypatch):
    config, starts, steps = briefly(load_recipe(SMALL)), [], []
    env = make(config.env)

    def failing(part, calls, lost):
        def call(*given):
            calls.append(given)
            if len(calls) in lost:
                raise KeyError("shelf")
            return getattr(type(env), part)(env, *given)

        return call

    monkeypatch.setattr(env, "start", failing("start", starts, (1, TASKS + 1)))
    monkeypatch.setattr(env, "step", failing("step", steps, (1, 2)))
    found = rehearse(config, env)
    assert len(found.turns) == TURNS * (TASKS - 2)
    assert found.problems == ()
    monkeypatch.setattr(env, "start", failing("start", starts, range(10_000)))
    with pytest.raises(CoevoError, match=r"^exception: KeyError: 'shelf' \(test_forecast\.py:\d+\)$"):
        rehearse(config, env)
