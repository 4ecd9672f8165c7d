"""Episodes that fail: which are lost or cut, what they count in, and what stops a run."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.sessions import opened
from support.simulators import Household
from support.worker import CONFIG, Short, environment, worker

from coevo.configs.load.load import load_recipe
from coevo.envs.base import Guide, Step
from coevo.envs.homerules import HomeRules
from coevo.records.answer_form import CallForm
from coevo.records.arrow import episodes_to_table, table_to_episodes
from coevo.records.draws import key
from coevo.tasks.play.episode_metrics import check_losses, loss_metrics, report_losses
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.play.vectorised_environments import RolloutPlan, VectorisedEnvironments
from coevo.tasks.steps.policy_steps import rollout, sample, shape
from coevo.utilities.errors import CoevoError


class Fragile(HomeRules):
    """The household, which breaks in one task as soon as anything is done there; states name their task."""

    def __init__(self, broken):
        super().__init__()
        self.broken = broken

    def start(self, task):
        state, observation = super().start(task)
        return (task.id, state), observation

    def step(self, states, actions):
        if any(name == self.broken for name, _ in states):
            raise KeyError("shelf")
        steps = super().step([state for _, state in states], actions)
        return [replace(step, state=(name, step.state)) for (name, _), step in zip(states, steps, strict=True)]


def attempts(tasks=3, group=2):
    drawn = environment().sample(tasks, key("tasks"))
    return [Attempt(task, n, (), "rollout-0", 1, key("play", task.id, n)) for task in drawn for n in range(group)]


def told(episodes):
    """Observations and tokens; log-probs differ in their last bits with the rest of the batch."""
    return [(each.id, [(turn.observation, turn.completion.token_ids) for turn in each.turns]) for each in episodes]


@pytest.fixture(scope="module")
def sound():
    worker().engine.forget()
    return worker().play(attempts())


@pytest.fixture(scope="module")
def broken(sound):
    """The same episodes with one task that the environment breaks in."""
    env = Fragile(sound[2].task.id)
    return RolloutWorker(env, worker().context, worker().engine, CONFIG.rollout.max_turns).play(attempts())


def test_an_exception_costs_the_episodes_that_cause_it_alone(sound, broken):
    assert [episode.lost for episode in broken[:2] + broken[4:]] == [""] * 4
    assert told(broken[:2] + broken[4:]) == told(sound[:2] + sound[4:])
    for episode in broken[2:4]:
        assert re.match(r"exception: KeyError: 'shelf' \(\w+\.py:\d+\) \(turn 0, action ", episode.lost)
        assert (episode.turns, episode.success, episode.truncated, episode.teaches) == ((), False, False, False)


SEEN = Step(0, "hall", "", 0.0, False, False)


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("step", None, "exception: TypeError: "),
        ("step", [None], "invalid: NoneType None is no step"),
        ("step", [replace(SEEN, observation=7)], "invalid: int 7 is no text"),
        ("step", [replace(SEEN, feedback="\ud83d")], "invalid: str '\\ud83d' is no text that UTF-8 can encode"),
        ("step", [replace(SEEN, reward=None)], "invalid: NoneType None is no finite number"),
        ("step", [replace(SEEN, progress=float("nan"))], "invalid: float nan is no finite number"),
        ("step", [replace(SEEN, success="no")], "invalid: str 'no' is no truth value"),
        ("step", [replace(SEEN, done=np.zeros(2))], "invalid: ndarray array([0., 0.]) is no truth value"),
        ("start", None, "invalid: NoneType None is no pair of state and observation"),
        ("start", (0, "\ud83d"), "invalid: str '\\ud83d' is no text that UTF-8 can encode"),
        ("guide", None, "invalid: NoneType None is no guide"),
        ("guide", Guide("\ud83d"), "invalid: str '\\ud83d' is no text that UTF-8 can encode"),
        ("guide", KeyError("shelf"), "exception: KeyError: 'shelf'"),
        ("guide", Guide(answer="line"), "invalid: str 'line' is no form of an answer"),
        (
            "guide",
            Guide(answer=CallForm()),
            "invalid: CallForm CallForm(examples=(), kind='call') is no form without tools",
        ),
        ("guide", Guide(tools=None), "invalid: NoneType None is no list of tools"),
        ("guide", Guide(tools=("go",)), "invalid: str 'go' is no tool with a name"),
        ("guide", Guide(tools=({"name": {1}},)), "invalid: dict {'name': {1}} is no JSON"),
        ("guide", Guide(tools=({"function": {}},)), "invalid: dict {'function': {}} is no tool with a name"),
        ("guide", Guide(tools=({"name": "go", "parameters": []},)), "invalid: list [] is no schema"),
        (
            "guide",
            Guide(tools=({"name": "go", "parameters": {"required": None}},)),
            "invalid: dict {'required': None} is no schema",
        ),
    ],
)
def test_what_is_no_step_start_or_guide_costs_its_episode(monkeypatch, part, value, reason):
    def answer(*_):
        if isinstance(value, Exception):
            raise value
        return value

    env = HomeRules()
    monkeypatch.setattr(env, part, answer)
    (episode,) = RolloutWorker(env, worker().context, worker().engine, 2).play(attempts(1, 1))
    assert episode.lost.startswith(reason)
    assert table_to_episodes(episodes_to_table([episode])) == [episode]


def test_numbers_of_numpy_become_pythons_own(monkeypatch):
    env, one, yes = HomeRules(), np.float32(1), np.bool_(True)
    step = replace(SEEN, reward=one, progress=one, done=yes, success=yes, valid=yes, truncated=np.bool_(False))
    monkeypatch.setattr(env, "step", lambda *_: [step])
    (found,) = env.try_step([0], ["look"])
    assert found == Step(0, "hall", "", 1.0, True, True, progress=1.0)
    assert json.dumps([found.reward, found.progress, found.success, found.truncated]) == "[1.0, 1.0, true, false]"


def test_an_overlong_prompt_ends_an_episode_with_its_reward_so_far(sound):
    longest = max(len(turn.prompt_ids) for episode in sound for turn in episode.turns)
    short = RolloutWorker(
        environment(), worker().context, Short(worker().engine, longest - 1), CONFIG.rollout.max_turns
    )
    cut = [episode for episode in short.play(attempts()) if episode.cut]
    whole = {episode.id: episode for episode in sound}
    assert cut
    for episode in cut:
        assert episode.cut.startswith(f"overlong: a prompt of {longest} tokens")
        assert (episode.truncated, episode.success, episode.lost) == (True, False, "")
        assert told([episode])[0][1] == told([whole[episode.id]])[0][1][: len(episode.turns)]
        assert len(whole[episode.id].turns[len(episode.turns)].prompt_ids) == longest


class Paying(HomeRules):
    """The household, which pays half a point for every turn and then tells too much."""

    def step(self, states, actions):
        steps = super().step(states, actions)
        return [replace(step, reward=0.5, done=False, observation=f"{step.observation} " * 200) for step in steps]


def test_a_cut_episode_keeps_its_reward_and_its_place_in_its_group(tmp_path):
    config = load_recipe("homerules-coevo-rl", ["rollout.tasks=2", "rollout.group_size=2", "evaluation.tasks=4"])
    paying = RolloutWorker(Paying(), worker().context, Short(worker().engine, 300), 6)
    with opened(tmp_path, config, played=paying) as session:
        episodes = session.pending.record(rollout(session, session.pending.record(sample(session))))
        shaped = session.pending.record(shape(session, episodes))
    assert [(len(episode.turns), episode.reward, bool(episode.cut)) for episode in episodes] == [(1, 0.5, True)] * 4
    assert [episode.id for episode in shaped.episodes] == [episode.id for episode in episodes]


def test_reasons_are_columns_only_where_there_are_any(sound, broken):
    assert {"lost", "cut"}.isdisjoint(episodes_to_table(sound).column_names)
    table = episodes_to_table(broken)
    assert "lost" in table.column_names
    assert "cut" not in table.column_names
    assert [episode.lost for episode in table_to_episodes(table)] == [episode.lost for episode in broken]


def test_losses_are_counted_reported_and_limited(broken):
    heard = []
    reporter = type("Reporter", (), {"warn": lambda self, text: heard.append(text)})()
    assert loss_metrics(broken, "train") == {"agent/lost/train/exception": 2.0}
    report_losses(reporter, broken, "train")
    assert heard[0].startswith("train: 2 of 6 episodes lost, first exception: KeyError: 'shelf' (")
    check_losses(broken, 0.5, "train")
    with pytest.raises(
        CoevoError, match=r"^train: the environment lost 2 of 6 episodes, more than rollout.lost_limit="
    ):
        check_losses(broken, 0.2, "train")
    nothing = [replace(episode, turns=(), cut="overlong: 9 tokens") for episode in broken if not episode.lost]
    with pytest.raises(CoevoError, match="no episode has a turn, first overlong"):
        check_losses(nothing, 0.5, "train")


def test_several_reasons_are_counted_without_their_turns(broken):
    heard, kinds = [], ("crash: its process ended with exit code 7", "timeout: no answer in 1 s")
    reporter = type("Reporter", (), {"warn": lambda self, text: heard.append(text)})()
    lost = [replace(broken[0], lost=f"{kinds[n % 3 == 0]} (turn {n}, action 'go (there')") for n in range(9)]
    report_losses(reporter, [*lost, *broken[:1]], "train")
    assert heard[0].startswith(f"train: {9 + bool(broken[0].lost)} of 10 episodes lost, first {kinds[1]} (turn 0, ")
    assert f"; in all 6 by {kinds[0]}, 3 by {kinds[1]}" in heard[0]
    many = [replace(broken[0], lost=f"exception: {n}") for n in range(9)]
    report_losses(reporter, many, "train")
    assert heard[1].endswith("1 by exception: 4, 4 by others")
    with pytest.raises(CoevoError, match=r"6 of them by crash: its process ended with exit code 7; in all 6 by crash"):
        check_losses(lost, 0.5, "train")


def test_lost_episodes_are_stored_and_teach_nothing(tmp_path):
    config = load_recipe("homerules-coevo-rl", ["rollout.tasks=3", "rollout.group_size=2", "evaluation.tasks=4"])
    with opened(tmp_path, config) as session:
        (first, *_) = sample(session).value.tasks
    fragile = RolloutWorker(Fragile(first.id), worker().context, worker().engine, CONFIG.rollout.max_turns)
    with opened(tmp_path, config, played=fragile) as session:
        tasks = session.pending.record(sample(session))
        episodes = session.pending.record(rollout(session, tasks))
        shaped = session.pending.record(shape(session, episodes))
        session.finish([*shaped.episodes, *shaped.rest])
        lost = {episode.id for episode in episodes if episode.lost}
        metrics = session.pending.metrics
        assert {episode.task.id for episode in episodes if episode.lost} == {first.id}
        assert {episode.id for episode in session.pending.episodes} >= lost
        assert lost.isdisjoint(episode.id for episode in (*shaped.episodes, *session.ended, *session.recent))
        assert metrics["agent/lost/train/exception"] == 2.0
        assert metrics["agent/success/train"] == sum(each.success for each in episodes) / 4


def test_slots_count_a_lost_part_and_start_anew():
    env = environment()
    (bad, good) = env.sample(2, key("slots"))
    fragile = RolloutWorker(Fragile(bad.id), worker().context, worker().engine, 5)
    plan = RolloutPlan(
        1, 3, lambda _, n: Attempt((bad, good)[min(n, 1)], n, (), f"r{n}", 1, key("slots", n)), lambda it: it
    )
    slots = VectorisedEnvironments()
    first, second = slots.play(fragile, plan)
    assert first.lost.startswith("exception: KeyError")
    assert (second.task, len(second.turns), bool(second.following)) == (good, 2, True)
    assert slots.finish([first, second]) == [first]


def test_a_stateful_household_is_played_as_the_pure_one_is(sound):
    env = Household()
    worker().engine.forget()
    try:
        again = RolloutWorker(env, worker().context, worker().engine, CONFIG.rollout.max_turns).play(attempts())
    finally:
        env.close()
    assert again == sound
