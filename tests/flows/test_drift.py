"""A run in a world that drifts, with the expert for a policy: tasks, panels and a resume follow the iteration."""

from types import SimpleNamespace

from support.player import player
from support.sessions import iterate, opened

import coevo.flows.evaluate
from benchmarks.learning.scripted import ExpertPlayer
from coevo.configs.load.load import load_recipe
from coevo.envs.homerules import HomeRules
from coevo.envs.registry import make
from coevo.flows.evaluate import evaluate_revision
from coevo.flows.evaluation import Request
from coevo.lineage.workspace import Workspace
from coevo.tasks.draft import Position
from coevo.tasks.steps.batch import tasks_of
from coevo.tasks.steps.gate import limits_at

CONFIG = load_recipe(
    "homerules-experience-only",
    [
        "warmstart=null", "env.drift=2", "env.houses=2", "rollout.tasks=4", "rollout.group_size=2", "iterations=6",
        "evaluation.tasks=4", "evaluation.every=1", "evaluation.final_panels=[]", "bank.retirement={replays: 1}",
    ],
)  # fmt: skip


def expert():
    return ExpertPlayer(make(CONFIG.env), player().context, player().engine, CONFIG.rollout.max_turns)


def panels_of(lineage):
    return [manifest.state["panels"].get("seen-houses") for manifest in lineage.log()]


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
    monkeypatch.setattr(coevo.flows.evaluate, "open_engine", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(coevo.flows.evaluate, "player_with", lambda *_: expert())
    with opened(tmp_path, CONFIG, played=expert()) as session:
        for _ in range(5):
            iterate(session)
        expected = panels_of(session.stores.lineage)
    assert len({*expected[1:]}) == 3
    for revision in (2, 3, 5):
        found = evaluate_revision(f"run@{revision}", Request("seen-houses"), Workspace(tmp_path))
        assert found.panel.hash == expected[revision]


def test_a_resumed_run_continues_in_the_world_of_its_iteration(tmp_path):
    def states(root, sittings):
        for count in sittings:
            with opened(root, CONFIG, played=expert()) as session:
                for _ in range(count):
                    iterate(session)
                log = session.stores.lineage.log()
        return [manifest.state["tables"] | manifest.state["panels"] for manifest in log]

    assert states(tmp_path / "whole", [6]) == states(tmp_path / "parts", [3, 2, 1])
