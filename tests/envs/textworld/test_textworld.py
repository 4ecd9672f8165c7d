"""TextWorld's games: generated here, played in worker processes, and the loop on them."""

import ast
import json
from contextlib import closing
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path

import pytest
from support.chat import chat
from support.loop import played
from textworld import Game
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.configs.env import PluginEnvConfig
from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.records.draws import key
from coevo.tasks.preflight.actions import Rehearsed, rehearse_actions
from coevo.tasks.steps.evaluate import expert_success
from coevo.utilities.errors import ConfigError

LAPTOP = (
    "policy.dtype=float32", "iterations=1", "rollout.engine={type: transformers}", "placement=null",
    "rollout.tasks=2", "rollout.group_size=2", "rollout.max_turns=2", "rollout.sampling.max_new_tokens=8",
    "bank.every=1", "evaluation.tasks=2", "update.deepspeed={device: cpu}",
)  # fmt: skip
SMALL = {"rooms": 1, "objects": 2, "quest": 2, "games": 3}


def test_training_games_are_drawn_by_key_and_never_in_the_panel():
    env = make(PluginEnvConfig(type="textworld"))
    drawn, panel = env.sample(20, key("one")), env.panel("new-games", 20)
    assert drawn == env.sample(20, key("one")) != env.sample(20, key("other"))
    assert len({task.id for task in (*drawn, *panel.tasks)}) == 40
    with pytest.raises(ConfigError, match="rooms, objects and quest are 1 to 20"):
        make(PluginEnvConfig(type="textworld", options={"rooms": 0}))


def test_the_environment_is_short():
    text = Path(find_spec("coevo.envs.textworld.textworld_games").origin).read_text(encoding="utf-8")
    strings = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr) and _is_text(node.value)]
    documented = {line for node in strings for line in range(node.lineno, node.end_lineno + 1)}
    lines = [line for at, line in enumerate(text.splitlines(), 1) if line.strip() and at not in documented]
    assert 40 <= len(lines) <= 60


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.full
def test_a_game_is_won_by_its_solution_and_repeats(tmp_path):
    with closing(make(PluginEnvConfig(type="textworld", options=SMALL | {"folder": str(tmp_path)}))) as env:
        (task,) = env.sample(1, key("game"))
        (first, seen), (second, _) = env.try_start([task, task])
        (file,) = tmp_path.glob("*/game.json")
        solution = json.loads(file.read_text())["metadata"]["walkthrough"]
        assert seen.startswith("Goal: ")
        (odd,) = env.step([first], ["dance with the wolves"])
        assert (odd.valid, odd.reward, odd.done) == (False, 0.0, False)
        told = []
        for command in solution:
            (step,) = env.step([second], [command])
            second = step.state
            told.append(step)
        again = env.step([odd.state, first], [solution[0]] * 2)
    assert [step.done for step in told] == [False] * (len(solution) - 1) + [True]
    assert told[-1].success
    assert sum(step.reward for step in told) == 1.0
    assert all(step.valid and step.feedback for step in told)
    assert again[1] == told[0]
    assert again[0].observation == told[0].observation


@pytest.mark.soak
def test_the_guide_of_a_game_names_its_things_and_the_commands_that_it_has(tmp_path):
    options = {"rooms": 2, "objects": 6, "quest": 2, "games": 30, "folder": str(tmp_path)}
    with closing(make(PluginEnvConfig(type="textworld", options=options))) as env:
        for task in env.sample(6, key("guides")):
            game = Game.load(str(env._file(task).with_suffix(".json")))
            text, kinds = env.guide(task).text, {each.type for each in game.infos.values() if each.name}
            assert f"Things of this game: {', '.join(sorted(game.objects_names))}." in text
            assert ("eat" in text, "unlock" in text, "put" in text) == ("f" in kinds, "k" in kinds, "s" in kinds)


@pytest.mark.full
def test_the_expert_solves_each_game_and_the_guide_names_its_commands(tmp_path):
    with closing(make(PluginEnvConfig(type="textworld", options={"folder": str(tmp_path)}))) as env:
        assert expert_success(env, env.sample(4, key("expert")), key("draws")) == 1.0
        assert rehearse_actions(env, lambda task: env.guide(task).text, 8, key("guide")) == Rehearsed((), ())


@pytest.mark.full
def test_the_recipe_runs_on_a_laptop_with_a_model_of_one_s_own(tmp_path, monkeypatch):
    """An untrained model writes noise: its actions are not understood, and the run says so and ends."""
    tokenizer = chat()
    shape = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=8192, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    save(Policy(Qwen3ForCausalLM(shape), tokenizer), tmp_path / "model")
    options = f"env.options={{rooms: 1, objects: 2, quest: 1, games: 2, folder: '{tmp_path / 'games'}'}}"
    config = load_recipe("textworld-coevo-rl", [f"policy.path={tmp_path / 'model'}", options, *LAPTOP])
    try:
        *_, last = played(tmp_path / "workspace", config, tmp_path / "model", monkeypatch)
    finally:
        assert not [each for each in active_children() if each.name == "coevo-simulator"]
    metrics = last.state["metrics"]
    assert (last.iteration, metrics["agent/success/train"], metrics["agent/turns/new-games"]) == (1, 0.0, 2.0)
    assert metrics["agent/invalid/train"] == 1.0
