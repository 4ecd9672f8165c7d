"""Gymnasium's environments: actions and observations in words, limits, and episodes that play again alike."""

from dataclasses import replace

import pytest
from support.adapted import RANDOM_ACTIONS, begun, failures, gymnasium, one
from support.gym_games import Echo

from coevo.configs.adapter_config import GymnasiumConfig
from coevo.envs.adapters.gymnasium_games import action_form, drawing
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.answer_form import BlockForm
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import ConfigError

LAKE = {"id": "FrozenLake-v1", "options": {"is_slippery": False}, "actions": ("left", "down", "right", "up")}
ECHO = {"id": "support.gym_games:Echo-v0"}


def test_an_episode_is_a_task_and_its_actions():
    with gymnasium(**LAKE) as env:
        state, seen = begun(env)
        assert (seen, env.guide(state.task).verbs) == ("state 0", ("left", "down", "right", "up"))
        steps = []
        for action in ("down", "Down ", "2", "right", "down", "right"):
            steps.append(one(env, state, action))
            state = steps[-1].state
        assert [step.observation for step in steps] == [f"state {n}" for n in (4, 8, 9, 10, 14, 15)]
        assert [(step.done, step.success) for step in steps] == [(False, False)] * 5 + [(True, True)]
        assert (steps[-1].feedback, steps[-1].reward) == ("reward 1; the episode is over", 1.0)
        # Equal histories never share an episode, and an old state stays as it is.
        again = one(env, steps[2].state, "down")
        assert (again.observation, one(env, steps[2].state, "right").observation) == ("state 13", "state 10")


def test_a_text_that_is_no_action_changes_nothing():
    with gymnasium(**LAKE) as env:
        state, seen = begun(env)
        for text in ("", "fly", "4", "-1", "9" * 5000, "down right", "²"):
            step = one(env, state, text)
            assert (step.valid, step.observation, step.reward, step.done) == (False, seen, 0.0, False)
            assert step.feedback == "this is no action. An action is one of these: left, down, right, up."
            state = step.state
        assert one(env, state, "down").observation == "state 4"


def test_time_limits_cut_and_ends_do_not():
    with gymnasium(**LAKE, steps=2) as env:
        state, _ = begun(env)
        first = one(env, state, "up")
        second = one(env, first.state, "up")
        assert (first.done, second.done, second.truncated, second.success) == (False, True, True, False)
        assert second.feedback == "reward 0; the time is up"
        fallen = one(env, one(env, state, "down").state, "right")
        assert (fallen.done, fallen.truncated, fallen.success) == (True, False, False)


def test_tasks_are_seeds_and_panels_have_others():
    with gymnasium(id="Taxi-v4", tasks=20, reward_range=(-2000.0, 20.0)) as env:
        trained, panel = env.sample(99, key("a")), env.panel("held-out", 5)
        assert sorted(task.data["seed"] for task in trained) == list(range(20))
        assert [task.data["seed"] for task in panel.tasks] == [10**9 + n for n in range(5)]
        import gymnasium as library

        bare = library.make("Taxi-v4")
        starts = [f"state {bare.reset(seed=task.data['seed'])[0]}" for task in panel.tasks]
        assert [seen for _, seen in env.try_start(panel.tasks)] == starts


def test_success_is_the_sum_of_rewards_where_a_setting_says_so():
    plays = {}
    for least in (None, -20.0, 0.0):
        with gymnasium(id="CliffWalking-v1", success=least, reward_range=(-100.0, 0.0)) as env:
            state, _ = begun(env)
            for action in ("0", *["1"] * 11, "2"):
                step = one(env, state, action)
                state = step.state
            plays[least] = (step.done, step.success)
    assert plays == {None: (True, False), -20.0: (True, True), 0.0: (True, False)}


def test_observations_are_words_of_a_function_or_a_drawing():
    with gymnasium(**LAKE, words="support.gym_games:corners") as env:
        state, seen = begun(env)
        assert (seen, one(env, state, "down").observation) == ("row 0 column 0", "row 1 column 0")
        assert {"row", "column", "3", "left"} <= set(env.vocabulary)
    with gymnasium(**LAKE, words="ansi") as env:
        state, seen = begun(env)
        assert seen == "red[S]FFF\nFHFH\nFFFH\nHFFG"
        assert one(env, state, "down").observation == "  (Down)\nSFFF\nred[F]HFH\nFFFH\nHFFG"
        assert env.vocabulary == ()
    with gymnasium(id="Blackjack-v1", reward_range=(-1.0, 1.0)) as env:
        assert len(begun(env)[1].split(", ")) == 3
    with gymnasium(id="CartPole-v1", reward_range=(0.0, 500.0)) as env:
        assert len([float(each) for each in begun(env)[1].split()]) == 4
    wrong = pytest.raises(ConfigError, match="gym_games:nothing returned NoneType None, not a text")
    with gymnasium(**LAKE, words="support.gym_games:nothing") as env, wrong:
        env.guide(env.sample(1, key("a"))[0])


@pytest.mark.parametrize(
    ("rendered", "text"),
    [
        ("\x1b[43m \x1b[0mA", "yellow[ ]A"),
        ("\x1b[34;1mR\x1b[42mG\x1b[0m", "blue[R]green[G]"),
        ("\x1b[2Jx\n", "x"),
        ("a", "a"),
    ],
)
def test_colours_of_a_drawing_are_words(rendered, text):
    assert drawing(rendered) == text


def test_text_actions_are_texts_and_shared_generators_are_an_episodes_own():
    with gymnasium(**ECHO) as env:
        states = [state for state, _ in env.try_start(env.sample(20, key("a")))]
        words = [begun(env, draw)[1] for draw in "abcdefgh"]
        assert len(set(words)) > 1
        assert words == [begun(env, draw)[1] for draw in "abcdefgh"]
        assert env.guide(states[0].task).answer == BlockForm()
        state, seen = begun(env)
        assert one(env, state, seen).success
        assert one(env, state, seen.upper()).valid is False
    with gymnasium(**ECHO, options={"noise": "shared"}) as env:
        assert [str(each) for each in check_environment(env, actions=("word a", "no")) if not each.passed] == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"id": "Nope-v1"}, "env.id = 'Nope-v1': gymnasium.make"),
        ({"id": "no_such_module:Game-v0"}, "No module named 'no_such_module'"),
        ({"id": "Pendulum-v1"}, "env.id: the actions are Box"),
        ({**LAKE, "actions": ("left",)}, "env.actions names 1 actions, but there are 4: name each, in their order"),
        ({**ECHO, "actions": ("left",)}, "env.actions: the actions are Text"),
        ({**LAKE, "words": "support.gym_games:no"}, "env.words = 'support.gym_games:no'"),
        ({**LAKE, "options": {"wings": 2}}, "unexpected keyword argument 'wings'"),
    ],
)
def test_what_cannot_be_played_is_one_line(settings, says):
    with gymnasium(**settings) as env, pytest.raises(ConfigError) as caught:
        env.guide(env.sample(1, key("a"))[0])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_an_environment_does_costs_its_own_episode_alone():
    with gymnasium(id="support.gym_games:Broken-v0") as env:
        states = [state for state, _ in env.try_start(env.sample(4, key("a")))]
        steps = env.try_step(states, ["raise", "nan", "fine", "text"])
        assert [isinstance(step, EpisodeFailure) for step in steps] == [True, True, False, True]
        assert "out of order" in str(steps[0])
        assert "returned nan, not a finite number" in str(steps[1])


def test_every_promise_of_the_interface_holds():
    for settings in (LAKE, {"id": "Taxi-v4", "reward_range": (-2000.0, 20.0)}):
        assert [str(each) for each in check_environment(make(GymnasiumConfig(**settings))) if not each.passed] == []
    with gymnasium(**ECHO, options={"noise": "clock"}) as env:
        failed = {each.name for each in check_environment(env, actions=("no",)) if not each.passed}
    assert failed == {"repeats"}


def test_an_environment_that_does_not_repeat_says_so():
    with gymnasium(**ECHO, repeats=False) as env:
        assert not env.repeats
        state, _ = begun(env)
        assert not isinstance(one(env, state, "no"), EpisodeFailure)
        assert "does not repeat" in str(one(env, replace(state, claim=None), "no"))


@pytest.mark.parametrize("count", RANDOM_ACTIONS)
@pytest.mark.parametrize("settings", [LAKE, ECHO])
def test_random_actions_never_raise_out_of_a_step(settings, count):
    with gymnasium(**settings) as env:
        assert failures(env, count) == []


def test_demonstrations_show_the_form_and_no_way():
    with gymnasium(**LAKE) as env:
        shown = env.demonstrations(200, 0, key("a"))
        assert shown == env.demonstrations(200, 0, key("a"))
        assert {each.answer.action for each in shown} == set(LAKE["actions"])
        assert {word for each in shown for word in each.moment.observation.split()} <= set(env.vocabulary)
        seeds = {task.data["seed"] for task in env.probe(20, key("a")).tasks}
        assert min(seeds) >= 2 * 10**9


def test_several_numbers_are_an_action_of_their_space():
    from gymnasium.spaces import MultiDiscrete

    form = action_form(MultiDiscrete([3, 2]), ())
    assert form.read("2 1").tolist() == [2, 1]
    assert [form.read(text) for text in ("3 1", "1", "1 1 1", "a b", "9999999999999999999 0", "-1 0")] == [None] * 6
    assert action_form(Echo().action_space, ()).read("A") is None
