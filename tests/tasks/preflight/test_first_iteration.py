"""The first iteration of a session beside its forecast: which stage is off, and why, where that can be seen."""

from types import SimpleNamespace

import pytest
from support.batches import batch

from coevo.configs.load.load import load_recipe
from coevo.models.capacity.devices import GIB, Device, Machine
from coevo.tasks.preflight import duration, notices
from coevo.tasks.preflight.duration import foreseen, late, report_pace, why
from coevo.tasks.preflight.notices import crowded

MACHINE = Machine((), Device("cpu", 8 * GIB, 5e10, 2e10))
CONFIG = load_recipe("homerules-coevo-rl")
TURNS = [turn for episode in batch(tasks=16, group=8) for turn in episode.turns]


def test_the_forecast_is_that_of_the_dry_run_for_what_was_played():
    """Twice the episodes take twice the update; replays take as long as as many episodes of the rollout."""
    once = foreseen(CONFIG, MACHINE, 300, TURNS, 128, 0)
    judged = foreseen(CONFIG, MACHINE, 300, TURNS, 128, 256)
    assert once.keys() == {"rollout", "update"}
    assert judged["judge"] == pytest.approx(2 * judged["rollout"])
    slower = foreseen(CONFIG, Machine((), Device("cpu", 8 * GIB, 1e10, 2e10)), 300, TURNS, 128, 0)
    assert slower["rollout"] > 2 * once["rollout"] > 0
    assert foreseen(load_recipe("homerules-react"), MACHINE, 300, TURNS, 128, 0).keys() == {"rollout"}


HARMFUL = {
    "the example": ({"rollout": 332.0}, {"rollout": 19.7}, "rollout took 332 s, its forecast is 19.7 s"),
    "an update": ({"update": 40.0, "rollout": 2.0}, {"rollout": 1.0, "update": 2.5}, "update took 40 s"),
    "replays": ({"judge": 100.0}, {"judge": 30.0}, "judge took 100 s, its forecast is 30.0 s"),
    "nearly no time": ({"rollout": 11.0}, {"rollout": 0.01}, "rollout took 11 s, its forecast is 0.0 s"),
}
HEALTHY = {
    "as foreseen": ({"rollout": 19.0, "update": 5.0}, {"rollout": 19.7, "update": 5.0}),
    "quicker": ({"rollout": 1.0}, {"rollout": 19.7}),
    "twice as long": ({"rollout": 40.0}, {"rollout": 19.7}),
    "a few seconds": ({"rollout": 9.0}, {"rollout": 0.1}),
    "elsewhere": ({"rollout": 400.0}, {}),
    "not played": ({}, {"judge": 3.0}),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_stage_that_is_far_off_is_named(name):
    spent, wanted, says = HARMFUL[name]
    (line,) = late(spent, wanted, "the machine is busy")
    assert line.startswith(says)
    assert line.endswith(": the machine is busy")
    assert next(late(spent, wanted, "")).endswith("compare with `coevo run --dry-run` on the idle machine")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_stage_that_is_not_is_not(name):
    assert list(late(*HEALTHY[name], "")) == []


def test_reasons_are_those_that_can_be_seen():
    assert list(why(1, 2, 2.9)) == []
    assert list(why(4, 2, 0.5)) == ["rollout.engine.threads=4 share 2 usable cores"]
    assert list(why(2, 2, 9.0)) == ["the machine is busy (load 9.0 on 2 usable cores)"]


def test_a_session_compares_its_first_iteration_once_and_without_the_start_of_its_trainer(monkeypatch, tmp_path):
    said = []
    session = SimpleNamespace(
        paced=False,
        config=CONFIG,
        ended=batch(tasks=16, group=8),
        seconds={"rollout": 60.0, "update": 70.0},
        pending=SimpleNamespace(metrics={}),
        parts=SimpleNamespace(
            trainer=SimpleNamespace(waited=65.0),
            worker=SimpleNamespace(engine=SimpleNamespace(policy=SimpleNamespace(tokenizer=range(300)))),
        ),
        stores=SimpleNamespace(paths=SimpleNamespace(root=tmp_path), reporter=SimpleNamespace(warn=said.append)),
    )
    monkeypatch.setattr(duration, "here", lambda directory: MACHINE)
    monkeypatch.setattr(duration.os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    monkeypatch.setattr(duration, "usable_cores", lambda: 2)
    report_pace(session)
    report_pace(session)
    (line,) = said
    assert line.startswith("rollout took 60 s")
    assert line.endswith("the machine is busy (load 9.0 on 2 usable cores)")


def test_more_threads_than_cores_are_named_and_stay(monkeypatch):
    monkeypatch.setattr(notices, "usable_cores", lambda: 2)
    config = load_recipe("homerules-coevo-rl", ["rollout.engine.threads=8"])
    (line,) = crowded(config)
    assert "rollout.engine.threads=8 is more than the 2 usable cores" in line
    assert line.endswith("set rollout.engine.threads=2")
    assert list(crowded(load_recipe("homerules-coevo-rl", ["rollout.engine.threads=2"]))) == []
