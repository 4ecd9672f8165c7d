"""Lessons that a model writes, in every shipped environment: its prompt shows what happened, turn by turn."""

import json
import os
import re
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.app_data import app_data, interpreter
from support.bench_checkout import checkout
from support.completions import completions, said
from support.evidence import evidence
from support.openenv_server import serving
from support.row_tables import written

from coevo.configs.adapter_config import FactoryConfig, GymnasiumConfig, McpConfig, OpenEnvConfig, VerifiersConfig
from coevo.configs.bank.writer import ModelContrastConfig
from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.configs.benchmark_config import AppWorldConfig, Tau2Config
from coevo.configs.env import PluginEnvConfig
from coevo.configs.load.load import load_env
from coevo.configs.rows_config import RowsConfig
from coevo.envs.registry import make
from coevo.envs.shipped import SHIPPED
from coevo.memory.writers.writer import AskFunction, writer_of
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.records.demonstration import Answer
from coevo.records.draws import key
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.inert import visible
from coevo.records.task import BY_SCOPE
from coevo.records.writing import estimated
from coevo.tasks.play.turns import turn_by_turn

MOST = 12
"""Turns of an attempt at most."""
TIGHT, ANSWER = 1000, 64
"""Context of a small writer model, and the tokens of its answers."""
REWARDED = {"function": "support.row_functions:exact"}
MCP = (sys.executable, "-S", str(Path(__file__).parents[2] / "support/mcp_server.py"))
SETTINGS = {"webshop": ["catalogue=makers", "products=12"], "searchqa": ["level=1"], "babyai": ["distractors=2"]}
PYTHONS = {name: os.environ.get(f"{name.upper()}_PYTHON") for name in ("alfworld", "verifiers")}
"""Interpreters with packages that conflict with ours."""
PARTS = {
    "rows": lambda folder: RowsConfig.model_validate({"path": str(written(folder)), "reward": REWARDED}),
    "gymnasium": lambda _: GymnasiumConfig(id="CliffWalking-v1", actions=("up", "right", "down", "left"), steps=MOST),
    "factory": lambda _: FactoryConfig(factory="support.factories:Counter"),
    "mcp": lambda folder: McpConfig(rows=str(written(folder)), reward=(REWARDED["function"],), command=MCP),
    "tau2": lambda folder: Tau2Config(path=str(checkout(folder))),
    "appworld": lambda folder: AppWorldConfig(path=str(app_data(folder / "root")), python=interpreter(folder)),
    "textworld": lambda _: PluginEnvConfig(type="textworld"),
    "alfworld": lambda _: PluginEnvConfig(type="alfworld", python=PYTHONS["alfworld"]),
    "verifiers": lambda _: VerifiersConfig(
        taskset="support.sums_taskset:Sums", python=PYTHONS["verifiers"], success=1.0, reward_range=(0.0, 1.5)
    ),
}
"""Settings of environments that need what a test makes."""
QUICK = {"homerules", "minesweeper", "searchqa", "sokoban", "webshop", "lifelong-db", "rows"}


@contextmanager
def opened(name, folder):
    if name == "openenv":
        with serving() as url, closing(make(OpenEnvConfig(url=url, observation="hint"))) as env:
            yield env
        return
    config = PARTS[name](folder) if name in PARTS else load_env(name, SETTINGS.get(name, []))
    with closing(make(config)) as env:
        yield env


def attempt(env, task, replica, strays):
    """An attempt whose first actions are nobody's; then the expert's, where there is one."""
    guide, turns = env.guide(task), []

    def act(state, moment):
        if len(turns) < strays or not env.has_expert:
            words = [*guide.verbs, "dance"]
            return Answer("", words[len(turns) % len(words)])
        return env.advise(state, moment, key("expert", len(turns)))

    for acted in turn_by_turn(env, task, guide, act, MOST):
        action, step = acted.answer.action, acted.step
        done = Completion((1,), (0.0,), action, True)
        turns.append(Turn(acted.moment.observation, (1,), done, action, step.feedback, step.reward, step.valid))
    name = Episode.name(1, "rollout", task, replica)
    return Episode(name, task, 1, replica, tuple(turns), step.success, step.truncated)


def told(url, episodes, context):
    """Ids of the attempts that each question shows; the endpoint has the questions in this order."""
    config = EndpointWriterModelConfig(
        type="endpoint", url=url, model="m", context=context, max_new_tokens=ANSWER, concurrency=1, retries=0
    )
    model, shown = EndpointWriterModel(config, pytest.fail), []

    def put(questions):
        shown.extend(each.episodes for each in questions)
        replies = dict(model.replies(questions))
        return [replies[place] for place in range(len(questions))]

    writer = writer_of(ModelContrastConfig(type="model-contrast"), BY_SCOPE)
    writer.write(evidence(episodes, ask=AskFunction(put, model.room)))
    return shown


def steps_of(text):
    """Number, quoted texts and reward (None if it is not told) of each step of an attempt, as a model reads them."""
    for line in re.findall(r"^\d+\. observed .*$", text, re.MULTILINE):
        number, rest = line.split(". observed ", 1)
        texts = []
        for name in ("", ", action ", ", feedback "):
            assert rest.startswith(name), line
            said, end = json.JSONDecoder().raw_decode(rest.removeprefix(name))
            texts.append(said)
            rest = rest.removeprefix(name)[end:]
        yield int(number), texts, float(rest.removeprefix(", reward ")) if rest else None


def plain(text):
    return " ".join(visible(text).split())


def happened(turn):
    return [plain(text) for text in (turn.observation, turn.action, turn.feedback)]


def rewards_of(episode):
    """Reward of each turn; where only the last one counts, that one."""
    rewards = [float(f"{turn.reward:g}") for turn in episode.turns]
    return rewards if any(rewards[:-1]) else [None] * (len(rewards) - 1) + rewards[-1:]


@pytest.fixture
def endpoint():
    answer = said(json.dumps({"first_wrong_step": 0, "lessons": []}))
    with completions(lambda _: answer) as (url, requests):
        yield url, requests


def check_whole(episodes, asked, user):
    attempts = re.split(r"^Attempt \d+ \(.*\)$", user, flags=re.MULTILINE)[1:]
    for name, text in zip(asked, attempts, strict=True):
        episode = next(each for each in episodes if each.id == name)
        steps = list(steps_of(text))
        assert [number for number, *_ in steps] == list(range(1, len(episode.turns) + 1))
        assert [texts for _, texts, _ in steps] == [happened(turn) for turn in episode.turns]
        assert [reward for *_, reward in steps] == rewards_of(episode)


def check_tight(episodes, asked, user):
    attempts = re.split(r"^Attempt \d+ \(.*\)$", user, flags=re.MULTILINE)[1:]
    for name, text in zip(asked, attempts, strict=True):
        episode = next(each for each in episodes if each.id == name)
        for number, texts, reward in steps_of(text):
            turn = episode.turns[number - 1]
            assert all(
                whole.startswith(part.removesuffix(" ...")) for part, whole in zip(texts, happened(turn), strict=True)
            )
            assert reward == rewards_of(episode)[number - 1]
        numbers = [number for number, *_ in steps_of(text)]
        assert numbers == sorted({1, len(episode.turns), *numbers})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.full]) for name in SHIPPED]
)
def test_a_writer_model_reads_observation_action_and_reward_of_every_turn(name, tmp_path, endpoint):
    if not PYTHONS.get(name, name in PARTS or not SHIPPED[name].remedy):
        pytest.skip(f"{name} cannot be played by this interpreter")
    url, requests = endpoint
    with opened(name, tmp_path) as env:
        (task,) = env.sample(1, key("told"))
        episodes = [attempt(env, task, replica, strays) for replica, strays in enumerate((0, 1, MOST))]
    assert any(len(each.turns) > 1 for each in episodes) or name == "rows"
    for context, check in ((100_000, check_whole), (TIGHT, check_tight)):
        first = len(requests)
        shown = told(url, episodes, context)
        assert shown
        for asked, request in zip(shown, requests[first:], strict=True):
            size = sum(estimated(message["content"]) for message in request.body["messages"])
            assert size + ANSWER <= context
            check(episodes, asked, request.user)
