"""Classes with TRL's protocol of environments, unchanged: ``reset``, tools, rewards."""

import json

import pytest
from support.adapted import COUNTS, RANDOM_ACTIONS, begun, call, factory, failures, one, rows_file

from coevo.envs.adapters.factory_episodes import tools_of
from coevo.records.demonstration import Answer
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.tasks.play.turns import turn_by_turn
from coevo.utilities.errors import ConfigError


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return rows_file(tmp_path_factory.mktemp("counts"))


@pytest.fixture(scope="module")
def env(path):
    with factory("Counter", path) as opened:
        yield opened


def test_what_reset_returns_reaches_the_agent(env):
    """Also the agent of a rollout, in the first prompt of its episode."""
    (task,) = env.sample(1, key("a"))
    goal = f"count to {task.data['row']['target']} without going over it"
    assert env.start(task)[1] == goal
    moments = []

    def act(state, moment):
        moments.append(moment)
        return Answer("", call("increment", by=1))

    list(turn_by_turn(env, task, env.guide(task), act, 1))
    assert (moments[0].instruction, moments[0].observation) == (task.instruction, goal)
    assert task.instruction in {row["prompt"] for row in COUNTS}


@pytest.mark.full
def test_public_methods_are_tools_as_trl_describes_them(env):
    from support.factories import Counter
    from transformers.utils import get_json_schema

    (task,) = env.sample(1, key("a"))
    tools = {tool["name"]: tool for tool in env.guide(task).tools}
    assert set(tools) == {"increment", "look", "answer"}
    ours = tools["increment"]["parameters"]
    theirs = get_json_schema(Counter().increment)["function"]["parameters"]
    assert (ours["required"], ours["properties"]["by"]) == (
        theirs["required"],
        {"type": "integer", "description": "How much to add."},
    )
    assert theirs["properties"]["by"] == ours["properties"]["by"]


def test_calls_change_the_instance_and_its_reward_comes_at_the_end(env):
    (task,) = env.sample(1, key("a"))
    target, (state, _) = task.data["row"]["target"], env.start(task)
    looked = one(env, state, call("look"))
    assert (looked.observation, looked.reward, looked.done) == ("count is 0", 0.0, False)
    step = one(env, looked.state, call("increment", by=target))
    assert (step.reward, step.done, step.success, step.scores) == (1.0, True, True, (("get_reward", 1.0),))
    assert step.observation == f"count is {target}"
    over = one(env, looked.state, call("increment", by=9))
    assert (over.reward, over.done, over.success) == (0.0, True, False)
    given_up = one(env, looked.state, call("answer", answer="I cannot"))
    assert (given_up.reward, given_up.done, given_up.success, given_up.truncated) == (0.0, True, False, False)


def test_a_tool_that_raises_tells_the_policy_and_the_episode_goes_on(env):
    state, _ = begun(env)
    step = one(env, state, call("increment", by=-1))
    assert (step.observation, step.valid, step.done) == ("error: it only goes up", False, False)
    for text, says in (
        ("hello", "this is no call"),
        (call("increment"), "by: Field required"),
        (call("reset"), "no tool"),
    ):
        told = one(env, state, text)
        assert (told.valid, told.done, says in told.feedback) == (False, False, True)
    assert one(env, step.state, call("increment", by=1)).valid


def test_an_episode_that_is_cut_is_rewarded(path):
    with factory("Counter", path, steps=2) as env:
        state, _ = begun(env)
        step = one(env, one(env, state, call("look")).state, call("look"))
        assert (step.done, step.truncated, step.success, step.reward) == (True, True, False, 0.0)


def test_reward_functions_of_trl_add_up_with_the_class(path):
    rewards = ("support.factories:answered", "support.factories:even")
    with factory("Counter", path, reward=rewards, reward_range=(0.0, 2.5), options={"step": 2}) as env:
        (task,) = [each for each in env.sample(40, key("a")) if each.data["row"]["target"] == 4][:1]
        state, _ = env.start(task)
        step = one(env, one(env, state, call("increment", by=1)).state, call("answer", answer="4"))
        assert step.scores == (("get_reward", 0.0), ("answered", 1.0), ("even", 0.5))
        assert (step.reward, step.success) == (1.5, False)


def test_a_class_without_rows_is_seeded_and_draws_of_its_own_repeat():
    with factory("Dice", reward="support.factories:even", tasks=50) as env:
        assert env.start(env.sample(1, key("a"))[0])[1] == "the task is open"
        actions = [call("throw"), call("look"), call("increment", by=1), call("answer", answer="1")]
        assert [str(each) for each in check_environment(env, actions=actions) if not each.passed] == []
        thrown = [
            json.loads(one(env, begun(env, draw)[0], call("throw")).observation)["count"] for draw in "abcdefghij"
        ]
        assert len(set(thrown)) > 1


def test_trls_own_class_for_servers_of_open_reward_plays_unchanged():
    pytest.importorskip("trl")
    with factory("openreward", reward="support.factories:openreward_reward", done="finished") as env:
        state, seen = begun(env)
        assert seen == "say the secret word"
        assert [tool["name"] for tool in env.guide(state.task).tools] == ["say", "answer"]
        wrong = one(env, state, call("say", word="shut"))
        assert (wrong.observation, wrong.done) == ("no", False)
        right = one(env, wrong.state, call("say", word="open"))
        assert (right.observation, right.done, right.success, right.reward) == ("yes", True, True, 1.0)


def test_every_promise_of_the_interface_holds(path):
    actions = [call("increment", by=1), call("look"), call("answer", answer="1")]
    with factory("Counter", path) as env:
        assert [str(each) for each in check_environment(env, actions=actions) if not each.passed] == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Silent", "a Silent has no reset: write one"),
        ("Undescribed", "support.factories:Undescribed.wave': it has no docstring"),
        ("Missing", "has no Missing"),
        ("corner", "has no corner"),
    ],
)
def test_what_is_no_factory_is_one_line(name, says):
    with factory(name) as env, pytest.raises(ConfigError) as caught:
        env.guide(env.sample(1, key("a"))[0])
    assert says in str(caught.value)
    assert str(caught.value).startswith("env.factory")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step(path, count):
    with factory("Counter", path, steps=1000) as env:
        assert failures(env, count, calls=("increment", "look", "answer", "reset", "_close")) == []


def test_a_bound_method_is_described_without_its_instance():
    from support.factories import Counter

    assert set(tools_of(Counter(), "a:Counter")["increment"].schema["parameters"]["properties"]) == {"by"}
