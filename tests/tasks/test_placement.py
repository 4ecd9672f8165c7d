"""Placement reaches the servers and the trainer: they sleep before it computes, and each has its own GPUs."""

import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from support.policies import qwen

from coevo.configs.load.load import load_recipe
from coevo.lineage.workspace import Workspace
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.policy.policy import save
from coevo.models.trainer.trainer_client import StartingPoint, TrainerError, TrainerLostError
from coevo.tasks.placement import RESTARTS, Sleeper, insisted, make_room, trainer_environment
from coevo.tasks.run.assemble import open_engine
from coevo.tasks.run.open_run import open_trainer
from coevo.utilities.errors import CoevoError, ConfigError

SMALL, SHARED, SEPARATE = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b", "homerules-jerp-qwen2.5-7b"


class Dozer:
    def __init__(self):
        self.levels = []

    def sleep(self, level):
        self.levels.append(level)


@pytest.mark.parametrize(("recipe", "levels"), [(SHARED, [2]), (SEPARATE, []), (SMALL, [])])
def test_only_servers_that_share_their_gpus_are_sent_to_sleep(recipe, levels):
    engine = Dozer()
    make_room(load_recipe(recipe), engine)
    assert engine.levels == levels


def test_how_deep_they_sleep_is_configured():
    engine = Dozer()
    make_room(load_recipe(SHARED, ["placement.sleep=1"]), engine)
    assert engine.levels == [1]


def test_an_engine_that_cannot_sleep_is_one_line():
    with pytest.raises(CoevoError, match="needs servers that can sleep") as caught:
        make_room(load_recipe(SHARED), object())
    assert "\n" not in str(caught.value)
    make_room(load_recipe(SMALL), object())
    assert issubclass(VllmEngine, Sleeper)


@pytest.fixture
def run(tmp_path):
    """Trainer, lineage and reporter of a run at revision 3, after six iterations."""
    begun, warned, artifacts = [], [], {"policy": "", "optimizer": ""}
    history = SimpleNamespace(head=lambda: SimpleNamespace(revision=3, iteration=6, artifacts=artifacts))
    files = SimpleNamespace(path=Path, materialise=lambda number, name, folder: folder.mkdir())
    stores = SimpleNamespace(
        lineage=SimpleNamespace(history=history, artifacts=files),
        reporter=SimpleNamespace(warn=warned.append),
        paths=SimpleNamespace(reference=tmp_path / "reference"),
    )
    trainer = SimpleNamespace(restart=begun.append, begun=begun, warned=warned)
    return SimpleNamespace(parts=SimpleNamespace(trainer=trainer), stores=stores, iteration=6)


def failing(times, error):
    """A computation that fails so many times before it succeeds."""
    left = [error] * times
    return lambda: fails(left.pop()) if left else "report"


def fails(error):
    raise error


def test_an_update_whose_trainer_is_lost_is_repeated_from_the_last_revision(run):
    lost, trainer = TrainerLostError("process 1 died"), run.parts.trainer
    assert insisted(run, failing(RESTARTS, lost)) == "report"
    start = StartingPoint(Path("policy"), run.stores.paths.reference, Path("optimizer"))
    assert trainer.begun == [start] * RESTARTS
    assert trainer.warned == ["process 1 died; its step is repeated from revision 3"] * RESTARTS
    with pytest.raises(TrainerLostError):
        insisted(run, failing(RESTARTS + 1, lost))


def test_a_trainer_that_is_lost_again_while_it_starts_is_one_more_death(run):
    lost = TrainerLostError("its node died")
    deaths = [lost] * (RESTARTS - 1)
    run.parts.trainer.restart = lambda start: fails(deaths.pop()) if deaths else None
    assert insisted(run, failing(1, lost)) == "report"
    deaths[:] = [lost] * RESTARTS
    with pytest.raises(TrainerLostError):
        insisted(run, failing(1, lost))


def test_updates_since_the_last_revision_are_not_dropped(run):
    """With ``lineage.every`` above 1 the trainer had made some, which no other one has."""
    run.iteration = 7
    with pytest.raises(TrainerLostError):
        insisted(run, failing(1, TrainerLostError("process 1 died")))
    assert run.parts.trainer.begun == []


def test_an_update_that_fails_by_itself_is_not_repeated(run):
    with pytest.raises(TrainerError, match="out of memory"):
        insisted(run, failing(1, TrainerError("out of memory")))
    assert run.parts.trainer.begun == []


def test_the_trainer_sees_the_gpus_that_are_its_own():
    assert trainer_environment(load_recipe(SEPARATE)) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert trainer_environment(load_recipe(SMALL)) == {}
    devices = ["rollout.engine.replicas=2", "rollout.engine.devices=['2,3','0,1']"]
    shared = load_recipe(SHARED, [*devices, "update.deepspeed.processes=4"])
    assert trainer_environment(shared) == {"CUDA_VISIBLE_DEVICES": "2,3,0,1"}
    with pytest.raises(ConfigError, match=r"rollout.engine.devices has 4 for update.deepspeed.processes=5"):
        load_recipe(SHARED, [*devices, "update.deepspeed.processes=5"])


@pytest.mark.parametrize(("recipe", "shared"), [(SHARED, True), (SEPARATE, False)])
def test_servers_that_share_their_gpus_are_started_so_that_they_can_sleep(recipe, shared, tmp_path, monkeypatch):
    """By an interpreter that says what it was started with."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    save(qwen(), tmp_path / "policy")
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@" end\nexec sleep 600\n')
    python.chmod(0o755)
    settings = [f"rollout.engine.python={python}", "rollout.engine.replicas=1", "rollout.engine.devices=['0']"]
    settings.append("update.deepspeed.processes=1")
    config = load_recipe(recipe, settings)
    log, give_up = tmp_path / "engine" / "server-0.log", time.monotonic() + 120
    with closing(open_engine(config, tmp_path / "policy", log.parent)):
        while not (log.exists() and " end\n" in log.read_text()):
            assert time.monotonic() < give_up
            time.sleep(0.02)
    assert ("--enable-sleep-mode" in log.read_text()) == shared


def test_the_trainer_is_started_with_its_own_gpus_in_sight(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    paths = Workspace(tmp_path).create("first", load_recipe(SMALL))
    for recipe, seen in ((SEPARATE, "1"), (SHARED, "0,1,2,3"), (SMALL, "0,1")):
        config = load_recipe(recipe, ["update.deepspeed.processes=1"])
        with open_trainer(config, tmp_path / "policy", None, None, paths) as trainer:
            assert environment(trainer.pid)["CUDA_VISIBLE_DEVICES"] == seen


def environment(pid):
    """Of the trainer: until its program has begun, a new process shows that of the one it came from."""
    process = psutil.Process(pid)
    while "coevo.models.trainer.child" not in process.cmdline():
        time.sleep(0.02)
    return process.environ()
