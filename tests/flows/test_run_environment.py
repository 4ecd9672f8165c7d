"""The environment of a run: on its workspace's cluster, on the data of its revision, and closed if that fails."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from coevo.configs.load.load import load_recipe
from coevo.flows import run_environment as module
from coevo.flows.gateway import run_gateway
from coevo.flows.run_environment import run_environment
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

CONFIG = load_recipe("homerules-coevo-rl")
RUN = SimpleNamespace(manifest=SimpleNamespace(state={}), config=CONFIG, name="first@1")


@pytest.fixture
def done(monkeypatch):
    """Names of the steps in their order."""
    steps = []
    env = SimpleNamespace(close=lambda: steps.append("close"))
    monkeypatch.setattr(module, "make", lambda config: steps.append("make") or env)
    for name in ("use_cluster", "check_data", "place_simulators"):
        monkeypatch.setattr(module, name, lambda *_, name=name: steps.append(name))
    return steps


@pytest.mark.parametrize(("run", "checks"), [(RUN, ["check_data"]), (None, [])])
def test_a_cluster_is_used_before_and_simulators_are_placed_after(done, tmp_path, run, checks):
    run_environment(CONFIG, tmp_path, run)
    assert done == ["use_cluster", "make", *checks, "place_simulators"]


@pytest.mark.parametrize("step", ["check_data", "place_simulators"])
def test_an_environment_that_does_not_fit_is_closed(done, monkeypatch, tmp_path, step):
    def fails(*_):
        raise CoevoError(f"{step} fails")

    monkeypatch.setattr(module, step, fails)
    with pytest.raises(CoevoError, match=f"{step} fails"):
        run_environment(CONFIG, tmp_path, RUN)
    assert (done.count("make"), done[-1]) == (1, "close")


def test_a_gateway_of_a_run_builds_it_on_the_cluster_and_the_data_of_its_revision(done, monkeypatch, tmp_path):
    monkeypatch.setattr(run_gateway, "reading", lambda *_: nullcontext(RUN))
    monkeypatch.setattr(run_gateway, "check_weights", lambda *_: None)
    run_gateway._environment_of("first@1", Workspace(tmp_path))
    assert done == ["use_cluster", "make", "check_data", "place_simulators"]
