"""A run in a world that drifts, with the expert for a policy: tasks, panels and a resume follow the iteration."""

from statistics import fmean
from types import SimpleNamespace

import pytest
from support.sessions import batch, do, iterate, opened, played, shaped
from support.worker import worker

import coevo.flows.evaluation.evaluate_revision
from benchmarks.learning.scripted import ExpertWorker
from coevo.configs.load.load import load_recipe
from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_conventions import facts
from coevo.envs.registry import make
from coevo.flows.evaluation.evaluate_revision import evaluate_revision
from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
from coevo.lineage.workspace import Workspace
from coevo.records.entry import Entry, entry_id
from coevo.tasks.iteration.batch import tasks_of
from coevo.tasks.iteration.held_out import limits_at
from coevo.tasks.iteration.paired_replay import MOST_READERS, readers, source_tasks
from coevo.tasks.pending_revision import Position
from coevo.tasks.steps.bank_steps import judge, write
from coevo.tasks.steps.policy_steps import gate_episodes

SETTINGS = [
    "warmstart=null", "env.drift=2", "env.houses=2", "rollout.tasks=4", "rollout.group_size=2", "iterations=6",
    "evaluation.tasks=4", "evaluation.every=1", "evaluation.final_panels=[]", "bank.retirement={replays: 1}",
]  # fmt: skip
CONFIG = load_recipe("homerules-experience-only", SETTINGS)
ANYWHERE = Entry(entry_id("", "all is well"), "all is well", "", "", "task", "", "train", (), 0, 0)


def expert(config=CONFIG):
    return ExpertWorker(make(config.env), worker().context, worker().engine, config.rollout.max_turns)


def panels_of(lineage):
    return [manifest.state["panels"].get("seen-houses") for manifest in lineage.history.log()]


def test_tasks_panels_and_limits_are_those_of_the_iteration(tmp_path):
    env = HomeRules(drift=2, houses=2)
    with opened(tmp_path, CONFIG, played=expert()) as session:
        for iteration in (1, 2, 3):
            there = Position(1, iteration - 1)
            assert tasks_of(session, there) == env.at(iteration).sample(4, session.key("sample", there))
            panel = {task.id for task in env.at(iteration).panel("seen-houses", 4).tasks}
            assert panel <= limits_at(session, there).held_out
        for _ in range(3):
            iterate(session)
        assert panels_of(session.stores.lineage)[1:] == [env.at(n).panel("seen-houses", 4).hash for n in (1, 2, 3)]


def test_a_revision_is_evaluated_in_the_world_of_its_iteration(tmp_path, monkeypatch):
    monkeypatch.setattr(
        coevo.flows.evaluation.evaluate_revision, "open_engine", lambda *_, **__: SimpleNamespace(close=lambda: None)
    )
    monkeypatch.setattr(coevo.flows.evaluation.evaluate_revision, "worker_with", lambda *_: expert())
    with opened(tmp_path, CONFIG, played=expert()) as session:
        for _ in range(5):
            iterate(session)
        expected = panels_of(session.stores.lineage)
    assert len({*expected[1:]}) == 3
    for revision in (2, 3, 5):
        found = evaluate_revision(f"run@{revision}", EvaluationRequest("seen-houses"), Workspace(tmp_path))
        assert found.panel.hash == expected[revision]


@pytest.mark.full
def test_a_resumed_run_continues_in_the_world_of_its_iteration(tmp_path):
    def states(root, sittings):
        for count in sittings:
            with opened(root, CONFIG, played=expert()) as session:
                for _ in range(count):
                    iterate(session)
                log = session.stores.lineage.history.log()
        return [manifest.state["tables"] | manifest.state["panels"] for manifest in log]

    assert states(tmp_path / "whole", [6]) == states(tmp_path / "parts", [3, 2, 1])


LATE = ["bank.every=4", "iterations=8", "env.drift=3", "env.houses=1", "rollout.tasks=8"]


def late(*settings):
    return load_recipe("homerules-experience-only", [*SETTINGS, *LATE, *settings])


def changes(tasks):
    return {task.data.get("changes", 0) for task in tasks}


def test_a_firing_over_a_change_replays_under_the_facts_in_force(tmp_path):
    """Lessons of the first three iterations are about facts that the fourth, in which the writer fires, lacks."""
    config = late("bank.admission={type: replay, replays: 8, confidence: null}", "bank.retirement=null")
    with opened(tmp_path, config, played=expert(config)) as session:
        for _ in range(3):
            iterate(session)
        assert changes(episode.task for episode in session.recent) == {0}
        shaped(session, batch(session))
        assert changes(episode.task for episode in session.recent) == {0, 1}
        proposal = do(session, write)
        assert changes(source_tasks(session, proposal.entries)) == {1}
        decision = do(session, judge, proposal)
        (house,) = {episode.task.scope for episode in session.recent}
        worth = {each.candidates[0].strategy: each.verdict.difference for each in decision.judged}
    for count, helps in ((0, False), (1, True)):
        held = facts(1, "train/0", house, count)
        gains = [worth[lesson] for lesson in map(held.lesson, held.subjects) if lesson in worth]
        assert gains
        assert (fmean(gains) > 0) == helps


def test_readers_of_an_entry_have_the_facts_in_force(tmp_path):
    config = late()
    with opened(tmp_path, config, entries=[ANYWHERE], played=expert(config)) as session:
        for _ in range(3):
            iterate(session)
        shaped(session, batch(session))
        found = readers(session, [ANYWHERE])
        assert len(found) == MOST_READERS == len({task.id for task in found})
        assert changes(found) == {1}


def test_source_tasks_on_trial_are_played_with_the_facts_in_force(tmp_path):
    config = late("bank.admission={type: within-group, iterations: 6}", "bank.every=1", "rollout.group_size=4")
    with opened(tmp_path, config, played=expert(config)) as session:
        for _ in range(3):
            iterate(session)
        assert changes(task for trial in session.bank.trials for task in trial.tasks) == {0}
        drawn, episodes = played(session)
        assert changes(episode.task for episode in episodes) == {1}
        gate_episodes(session, episodes)
        tried = [each.task.id for each in episodes if drawn.tried.treats(each.task.id, each.replica)]
        assert len(tried) > len({*tried}) > 0
