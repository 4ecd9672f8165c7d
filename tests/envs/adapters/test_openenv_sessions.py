"""Servers of OpenEnv: sessions by WebSocket, actions by the server's schema, and answers that are checked."""

from contextlib import closing

import pytest
from support.adapted import RANDOM_ACTIONS, begun, call, failures, one
from support.openenv_server import serving

from coevo.configs.adapter_config import OpenEnvConfig
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.answer_form import BlockForm
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import ConfigError

NUMBERS = [str(n) for n in range(1, 10)]


@pytest.fixture(scope="module")
def url():
    with serving() as address:
        yield address


def opened(url, **settings):
    return closing(make(OpenEnvConfig(url=url, **settings)))


@pytest.fixture(scope="module")
def env(url):
    with opened(url, observation="hint") as made:
        yield made


def test_an_episode_is_a_session_that_its_seed_decides(env):
    state, seen = begun(env)
    assert seen == f"guess a number for {state.task.data['seed']}"
    steps = [one(env, state, number) for number in NUMBERS]  # each in a session of its own
    assert sorted(step.observation for step in steps)[-1] == "right"
    (right,) = [step for step in steps if step.done]
    assert (right.reward, right.success, right.feedback) == (1.0, True, "reward 1; the episode is over")


def test_actions_follow_the_schema_of_the_server(env, url):
    assert env.guide(env.sample(1, key("a"))[0]).answer == BlockForm()
    with serving("choice") as address, opened(address) as made:
        assert made.guide(made.sample(1, key("a"))[0]).verbs == ("left", "right")
    with serving("several") as address, opened(address) as made:
        state, _ = begun(made)
        (tool,) = made.guide(state.task).tools
        assert (tool["name"], tool["parameters"]["required"]) == ("step", ["a", "b"])
        steps = [one(made, state, call("step", a=n, b=0)) for n in range(1, 10)]
        assert sum(step.success for step in steps) == 1
        assert one(made, state, "7").feedback == "this is no call of step"
    with (
        opened(url, action="speed") as made,
        pytest.raises(ConfigError, match="actions have no such field"),
    ):
        made.guide(made.sample(1, key("a"))[0])


def test_an_observation_has_all_fields_that_are_not_empty(url):
    with opened(url) as made:
        state, seen = begun(made)
        assert seen == f"hint: guess a number for {state.task.data['seed']}\nleft: 8"


def test_rows_are_arguments_of_reset_and_a_limit_cuts(url, tmp_path):
    path = tmp_path / "goals.jsonl"
    path.write_text("".join(f'{{"prompt": "guess {n}", "goal": {n}}}\n' for n in range(1, 40)))
    with opened(url, rows=str(path), steps=1) as made:
        (task,) = made.sample(1, key("a"))
        state, _ = made.start(task)
        assert one(made, state, str(task.data["row"]["goal"])).success
        cut = one(made, state, "0")
        assert (cut.done, cut.truncated, cut.success) == (True, True, False)


def test_the_policy_reads_why_an_action_was_refused(env):
    state, seen = begun(env)
    step = one(env, state, "boom")
    assert (step.valid, step.feedback, step.observation, step.done) == (False, "error: boom!", seen, False)
    assert one(env, step.state, "0").observation == "no 0"


def test_answers_of_the_server_are_checked(env):
    state, _ = begun(env)
    for text in ("nan", "list"):
        step = one(env, state, text)
        assert isinstance(step, EpisodeFailure)
        assert "is no observation" in str(step)
    assert one(env, state, "long").observation.endswith("characters are left out ...]")


def test_what_cannot_be_reached_is_one_line(url):
    for address, says in (
        ("http://127.0.0.1:9", "it does not answer"),
        (f"{url}/else", "it does not answer (HTTP Error 404"),
    ):
        with opened(address) as made, pytest.raises(ConfigError) as caught:
            made.guide(made.sample(1, key("a"))[0])
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
    with serving(room=1) as address, opened(address) as made:
        tasks = made.sample(2, key("a"))
        assert [isinstance(each, EpisodeFailure) for each in made.try_start(tasks)].count(True) == 1
        assert "at capacity" in str(next(each for each in made.try_start(tasks) if isinstance(each, EpisodeFailure)))


def test_every_promise_of_the_interface_holds(url):
    with opened(url, observation="hint") as made:
        assert [str(each) for each in check_environment(made, actions=NUMBERS) if not each.passed] == []


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
def test_random_actions_never_raise_out_of_a_step(env, count):
    assert failures(env, count, side_by_side=40) == []
