"""An environment tells the outcome that the same actions have when they are played directly, or one line."""

import asyncio
import tracemalloc
from contextlib import closing
from threading import Event, Timer

import pytest
from support.hostile import Hostile
from support.row_tables import made, rated, written
from support.worker import environment

from coevo.configs.base import MAX_TURNS
from coevo.envs.base import NO_GUIDE, Step
from coevo.records.draws import extend, key
from coevo.records.episode import total
from coevo.tasks.gateway.environment_outcome import OutcomeEnvironment
from coevo.tasks.gateway.session_store import SessionTask
from coevo.tasks.play.turns import turn_by_turn
from coevo.utilities.errors import CoevoError

DRAW = key(5, "outcomes")
TASKS = environment().sample(12, DRAW)


def session_of(task, **changed):
    about = {"kind": task.kind, "instruction": task.instruction, "scope": task.scope, "data": dict(task.data)}
    return SessionTask(**{**about, **changed})


def by_expert(number, task):
    def act(state, moment):
        return environment().advise(state, moment, extend(DRAW, number, len(moment.history)))

    return list(turn_by_turn(environment(), task, NO_GUIDE, act, 20))


def told(task, actions, answers=0, env=None):
    outcomes = OutcomeEnvironment(lambda: env or environment(), MAX_TURNS)
    return outcomes.outcome(task, actions, answers).result()


@pytest.mark.parametrize("number", range(len(TASKS)))
def test_an_outcome_is_that_of_the_actions(number):
    turns = by_expert(number, TASKS[number])
    actions = tuple(turn.answer.action for turn in turns)
    found = told(session_of(TASKS[number]), actions, len(actions))
    assert (found.reward, found.success) == (total(turn.step.reward for turn in turns), turns[-1].step.success)
    assert found.actions == actions
    assert [(each.turn, each.observation, each.feedback) for each in found.steps] == [
        (index, turn.moment.observation, turn.step.feedback) for index, turn in enumerate(turns)
    ]
    assert told(session_of(TASKS[number]), actions, len(actions) + 1).steps == ()
    assert not told(session_of(TASKS[number]), actions[:1]).success


def test_rows_are_rewarded_by_their_functions(tmp_path):
    rewards = [rated("exact", weight=0.75), rated("short", weight=0.25)]
    with closing(made(written(tmp_path), reward=rewards)) as env:
        (task,) = env.sample(1, DRAW)
        right = told(session_of(task), [task.data["row"]["answer"]], env=env)
        wrong = told(session_of(task), ["a long and wrong answer"], env=env)
        assert (right.reward, right.success, right.scores) == (1.0, True, {"exact": 1.0, "short": 1.0})
        assert (wrong.success, wrong.scores["exact"]) == (False, 0.0)
        with pytest.raises(CoevoError, match="the task has no row"):
            told(session_of(task, data={"columns": []}), ["1"], env=env)


class Late:
    """A builder whose first call fails."""

    calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls == 1:
            raise CoevoError("env.path=gone: put the table there")
        return environment()


@pytest.mark.parametrize(
    ("changed", "more", "says"),
    [
        ({"data": {}}, [], "has no data"),
        ({"data": {"a": [1]}}, [], "cannot play the session's task"),
        ({}, ["look"], "was over after"),
    ],
)
def test_what_cannot_be_played_is_one_line(changed, more, says):
    actions = [turn.answer.action for turn in by_expert(0, TASKS[0])]
    with pytest.raises(CoevoError, match=says) as refused:
        told(session_of(TASKS[0], **changed), [*actions, *more])
    assert "\n" not in str(refused.value)


def test_an_environment_that_cannot_be_built_is_tried_again():
    outcomes = OutcomeEnvironment(Late(), MAX_TURNS)
    with pytest.raises(CoevoError, match="put the table there"):
        outcomes.outcome(session_of(TASKS[0]), ["look"], 1).result()
    assert outcomes.outcome(session_of(TASKS[0]), ["look"], 1).result().steps[0].action == "look"


class Endless(Hostile):
    """An environment without a limit of its own, which gives each turn the scores and the reward that it gets."""

    def __init__(self, scores=(), reward=0.0):
        super().__init__()
        self.scores, self.reward, self.calls, self.closed = iter(scores), reward, 0, False

    def _step(self, state, action):
        self.calls += 1
        return Step(state + 1, "here", "done", self.reward, False, False, scores=tuple(next(self.scores, {}).items()))

    def close(self):
        self.closed = True


ENDLESS = SessionTask(data={"n": 0})


def test_more_actions_than_the_turns_of_a_rollout_are_refused_before_anything_is_played():
    env = Endless()
    with pytest.raises(CoevoError, match=f"10000 are more than rollout.max_turns={MAX_TURNS} allows") as refused:
        told(ENDLESS, ["a"] * 10_000, env=env)
    assert (env.calls, "\n" in str(refused.value)) == (0, False)
    assert len(told(ENDLESS, ["a"] * MAX_TURNS, MAX_TURNS, env=env).steps) == MAX_TURNS


@pytest.mark.parametrize("answers", [0, 2000])
def test_memory_grows_with_the_number_of_actions_alone(answers):
    outcomes = OutcomeEnvironment(Endless, 10_000)
    tracemalloc.start()
    try:
        assert len(outcomes.outcome(ENDLESS, ["a"] * 2000, answers).result().steps) == answers
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20  # 16 MiB with the history of every turn
    finally:
        tracemalloc.stop()


def test_scores_are_means_over_the_turns_that_have_them():
    env = Endless([{"exact": 1.0, "short": 0.5}, {"exact": 0.0}, {}, {"exact": 0.5, "late": 1.0}])
    assert told(ENDLESS, ["a"] * 4, env=env).scores == {"exact": 0.5, "short": 0.5, "late": 1.0}


@pytest.mark.parametrize("given", [{"reward": 1e7}, {"scores": [{"big": 1e308}, {"big": 1e308}]}])
@pytest.mark.parametrize("answers", [0, 2])
def test_an_outcome_that_is_out_of_bounds_is_one_line(given, answers):
    with pytest.raises(CoevoError, match="the environment's outcome is out of bounds") as refused:
        told(ENDLESS, ["a", "a"], answers, env=Endless(**given))
    assert "\n" not in str(refused.value)


def test_outcomes_that_wait_hold_no_other_thread_and_end_with_the_environment():
    building, go, env = Event(), Event(), Endless()

    def build():
        building.set()
        assert go.wait(60)
        return env

    outcomes = OutcomeEnvironment(build, MAX_TURNS)
    asked = [outcomes.outcome(ENDLESS, ["a"], 1) for _ in range(100)]
    assert building.wait(60)

    async def elsewhere():
        return await asyncio.wait_for(asyncio.to_thread(lambda: "moves"), 60)

    assert asyncio.run(elsewhere()) == "moves"
    Timer(0.1, go.set).start()
    outcomes.close()
    assert (asked[0].result().success, env.calls, env.closed) == (False, 1, True)
    assert all(each.cancelled() for each in asked[1:])
