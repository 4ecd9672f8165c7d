"""Replays on real stores, with the expert for a policy."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from support.entries import entry
from support.sessions import batch, opened
from support.worker import ExpertWorker, Keeping, expert_worker

from coevo.configs.load.load import load_recipe
from coevo.memory.admission.admission import Trial
from coevo.tasks.iteration.paired_replay import replay
from coevo.utilities.errors import CoevoError

SMALL = ["warmstart=null", "rollout.tasks=2", "rollout.group_size=2", "evaluation.tasks=4"]


def test_trials_are_played_together_as_many_episodes_at_a_time_as_a_rollout_has(tmp_path):
    keeping = expert_worker(Keeping)
    with opened(tmp_path, load_recipe("homerules-experience-only", SMALL), played=keeping) as session:
        episodes = batch(session)
        session.recent.extend(episodes)
        first, second = (
            replace(entry(source.task.instruction, scope=source.task.scope), sources=(source.id,))
            for source in (episodes[0], episodes[-1])
        )
        trials = [Trial((first,), (first,)), Trial((), (first,)), Trial((second,), (first, second))]
        rewards = replay(session, Counter(), trials, 3)
    played = keeping.played[1:]
    assert [len(batch) for batch in played] == [4, 4, 4]
    assert [len(mine) for mine in rewards] == [3, 3, 6]
    flat = [episode for batch in played for episode in batch]
    assert [reward for mine in rewards for reward in mine] == [episode.reward for episode in flat]
    tasks = [episodes[0].task.id] * 9 + [episodes[-1].task.id] * 3
    assert [(episode.task.id, episode.replica) for episode in flat] == list(zip(tasks, [0, 1, 2] * 4, strict=True))
    assert [bool(episode.turns[0].retrieved) for episode in flat[:6]] == [True] * 3 + [False] * 3


class Losing(ExpertWorker):
    """Loses the replays of a task after the first."""

    def play(self, attempts):
        played = super().play(attempts)
        return [replace(e, lost="exception: gone" * (e.replica > 0 and "/replay/" in e.id)) for e in played]


def test_lost_replays_are_reported_and_too_many_stop_the_run(tmp_path):
    losing, heard = expert_worker(Losing), []
    with opened(tmp_path, load_recipe("homerules-experience-only", SMALL), played=losing) as session:
        session.stores.reporter.warn = heard.append
        source, *_ = session.recent = batch(session)
        told = replace(entry(source.task.instruction, scope=source.task.scope), sources=(source.id,))
        trials = [Trial((told,), (told,)), Trial((), (told,))]
        rewards = replay(session, Counter(), trials, 2)
        assert [[math.isnan(reward) for reward in mine] for mine in rewards] == [[False, True]] * 2
        assert heard == ["replay: 2 of 4 episodes lost, first exception: gone"]
        with pytest.raises(CoevoError, match=r"^replay: the environment lost 4 of 6 episodes"):
            replay(session, Counter(), trials, 3)
