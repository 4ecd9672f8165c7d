"""Episodes that each have a loop of their own: the same episodes, and none waits for another."""

from contextlib import closing
from dataclasses import replace
from threading import Event

import pytest
from support.simulators import Household
from support.storm import Storm
from support.worker import Shared, alone, environment, worker

from coevo.configs.context_config import ContextConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.homerules import HomeRules
from coevo.models.policy.context import Context
from coevo.records.draws import extend, key
from coevo.tasks.play.episode_metrics import check_losses, loss_metrics
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.play.vectorised_environments import RolloutPlan, VectorisedEnvironments
from coevo.utilities.errors import CoevoError


def attempts(env, count=8, base=("pace",)):
    root = key(*base)
    tasks = enumerate(env.sample(count, root))
    return [Attempt(task, n, (), "rollout-0", 1, extend(root, task.id, n)) for n, task in tasks]


def without_logprobs(episodes):
    """Episodes as they are but for log-probs, whose last digits depend on the rest of a batch."""
    return [
        replace(
            episode,
            turns=tuple(replace(turn, completion=replace(turn.completion, logprobs=())) for turn in episode.turns),
        )
        for episode in episodes
    ]


def test_both_paces_play_the_same_episodes():
    together, apart = worker().play(attempts(environment())), alone().play(attempts(environment()))
    assert without_logprobs(apart) == without_logprobs(together)
    for one, other in zip(together, apart, strict=True):
        for turn, same in zip(one.turns, other.turns, strict=True):
            assert same.completion.logprobs == pytest.approx(turn.completion.logprobs, abs=1e-5)


def test_workers_serve_many_episodes_at_once():
    with closing(Household()) as env:
        env.simulator = SimulatorConfig(workers=2)
        episodes = alone(env).play(attempts(environment(), 6))
        assert len(env.workers._alive) == 2
        assert sum(process.episodes for process in env.workers._alive) == 0
        assert not any(process.ended for process in env.workers._alive)
    assert without_logprobs(episodes) == without_logprobs(worker().play(attempts(environment(), 6)))


class Waiting(HomeRules):
    """The household, in which the first action of the first task waits until another episode has ended."""

    concurrent = True
    first = ""

    def __init__(self):
        super().__init__()
        self.ended, self.waited = Event(), False

    def start(self, task):
        self.first = self.first or task.id
        state, seen = super().start(task)
        return (task.id, 0, state), seen

    def step(self, states, actions):
        return [self._one(state, action) for state, action in zip(states, actions, strict=True)]

    def _one(self, state, action):
        name, number, inner = state
        if name == self.first and number == 0:
            self.waited = self.ended.wait(20)
        (step,) = super().step([inner], [action])
        if step.done:
            self.ended.set()
        return replace(step, state=(name, number + 1, step.state))


def test_a_slow_tool_holds_up_its_own_episode_only():
    env = Waiting()
    tasks = attempts(env, 3)
    env.first = tasks[0].task.id
    alone(env).play(tasks)
    assert env.waited


class Guarded(HomeRules):
    """The household, which counts threads inside it."""

    inside = most = 0

    def try_step(self, states, actions):
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            return super().try_step(states, actions)
        finally:
            self.inside -= 1


def test_an_environment_that_is_not_concurrent_is_used_by_one_thread_at_a_time():
    env = Guarded()
    assert len(alone(env).play(attempts(env, 8))) == 8
    assert env.most == 1


class Breaking(Shared):
    """Engine that breaks at its 20th request."""

    asked = 0

    def generate(self, requests):
        with self.lock:
            self.asked += 1
            if self.asked >= 20:
                raise CoevoError("the server is gone")
            return self.engine.generate(requests)


def test_an_error_ends_every_loop_after_its_turn():
    real = worker()
    engine = Breaking(real.engine)
    with pytest.raises(CoevoError, match="the server is gone"):
        RolloutWorker(environment(), real.context, engine, 50, alone=True).play(attempts(environment(), 16))
    assert engine.asked < 20 + 16


def test_a_timeout_loses_its_episode_and_is_recorded():
    with closing(Storm(workers=4)) as env:
        tasks = [env.task(number, "train") for number in (2, 6, 7, 8, 1)]
        episodes = alone(env, 5).play([Attempt(task, 0, (), "rollout-0", 1, key("storm", task.id)) for task in tasks])
    assert episodes[0].lost.startswith("timeout: no answer in 4 s (turn 1, ")
    assert [episode.success for episode in episodes] == [False, True, True, True, False]
    assert loss_metrics(episodes, "train") == {"agent/lost/train/timeout": 1.0, "agent/lost/train/exception": 1.0}
    check_losses(episodes, 0.5, "train")
    with pytest.raises(CoevoError, match=r"rollout\.lost_limit=0\.1"):
        check_losses(episodes, 0.1, "train")


def test_unusable_answers_in_a_row_end_an_episode_at_either_pace():
    real = worker()
    context = Context(ContextConfig(invalid_limit=2), real.engine.policy.tokenizer)
    apart = alone(context=context).play(attempts(environment()))
    together = RolloutWorker(environment(), context, real.engine, 50).play(attempts(environment()))
    assert any(len(episode.turns) == 2 and episode.truncated for episode in apart)
    assert without_logprobs(apart) == without_logprobs(together)


@pytest.mark.parametrize("turns", [1, 3])
def test_slots_play_the_same_parts(turns):
    def draw(update):
        def attempt(slot, number):
            (each,) = attempts(environment(), 1, ("slots", update, slot, number))
            return replace(each, stage=f"rollout-{update}.{slot}.{number}")

        return RolloutPlan(4, turns, attempt, lambda each: each)

    slots, others = VectorisedEnvironments(), VectorisedEnvironments()
    for update in range(4):
        parts, same = slots.play(worker(), draw(update)), others.play(alone(), draw(update))
        assert without_logprobs(same) == without_logprobs(parts)
        slots.finish(parts)
        others.finish(same)
        assert sorted(others.running) == sorted(slots.running)
