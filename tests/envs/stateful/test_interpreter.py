"""Workers of another interpreter: it has its own packages, and the modules of coevo and of the user."""

import os
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from support.scheduled import wait_for
from support.simulators import Sums

from coevo.configs.env import PluginEnvConfig
from coevo.envs.failures import EpisodeFailure, EpisodeLostError
from coevo.envs.registry import make
from coevo.records.draws import key
from coevo.tasks.checks.environment_check import check_environment
from coevo.utilities.errors import CoevoError, ConfigError

NEEDED = ("numpy", "pydantic", "pydantic_core", "annotated_types", "typing_inspection")
USER = """
from support.simulators import Sum, Sums

class Elsewhere(Sums):
    name = "elsewhere"

    def open(self, task, key):
        import importlib.util, only_there, sys
        live = Sum(self.target, key, "")
        names = ("torch", "gymnasium", "pyarrow", "lancedb", "mlflow")
        return live, f"{only_there.NAME} {sys.prefix} {[name for name in names if importlib.util.find_spec(name)]}"
"""


def interpreter(folder, packages=NEEDED):
    """A Python of its own, with a few packages of this one and a module that is nowhere else."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in packages:
        place = Path(find_spec(name).submodule_search_locations[0])
        (site / name).symlink_to(place)
        libraries = place.with_name(f"{name}.libs")
        if libraries.is_dir():
            (site / libraries.name).symlink_to(libraries)
    if packages:
        (site / "typing_extensions.py").symlink_to(find_spec("typing_extensions").origin)
    (site / "only_there.py").write_text("NAME = 'there'\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return interpreter(tmp_path_factory.mktemp("other") / "venv")


@pytest.fixture
def env(python, tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(USER)
    monkeypatch.syspath_prepend(tmp_path)
    made = make(PluginEnvConfig(type="elsewhere:Elsewhere", python=str(python)))
    yield made
    made.close()
    sys.modules.pop("elsewhere", None)


def test_a_simulator_runs_where_its_packages_are(env, python):
    (task,) = env.sample(1, key("a"))
    state, seen = env.start(task)
    assert seen == f"there {python.parents[1]} []"
    (step,) = env.step([state], ["7"])
    assert step.success
    assert [str(each) for each in check_environment(env, actions=["1", "2"]) if not each.passed] == []


def test_it_plays_as_it_does_here(python):
    steps = []
    for other in (None, str(python)):
        env = Sums(target=9)
        env.python = other
        states = [state for state, _ in env.try_start(env.sample(6, key("a")))]
        steps.append([each.observation for each in env.step(states, ["1"] * 6)])
        env.close()
    assert steps[0] == steps[1]


def test_a_worker_ends_with_its_environment_and_is_replaced_when_it_dies(python, tmp_path):
    options = {"log": str(tmp_path / "log")}
    env = make(PluginEnvConfig(type="support.simulators:FailingSums", python=str(python), options=options))
    tasks = env.sample(2, key("a"))
    states = [state for state, _ in env.try_start(tasks)]
    steps = env.try_step(states, ["exit", "1"])
    assert str(steps[0]) == "crash: its process ended with exit code 3"
    assert not isinstance(steps[1], EpisodeFailure)
    env.close()
    pids = [int(line.split()[1]) for line in (tmp_path / "log").read_text().splitlines()]
    wait_for(lambda: not any(map(psutil.pid_exists, pids)), 60)


def test_an_interpreter_that_cannot_play_is_one_line(tmp_path):
    for python, says in (
        (tmp_path / "no-python", "env.python=.*no-python: No such file"),
        (interpreter(tmp_path / "bare", ()), "No module named '(numpy|pydantic)': it needs numpy, pydantic and"),
    ):
        env = Sums()
        env.python = str(python)
        with pytest.raises((CoevoError, EpisodeLostError), match=says) as caught:
            env.start(env.sample(1, key("a"))[0])
        assert "\n" not in str(caught.value)
        env.close()


def test_only_a_stateful_environment_has_an_interpreter():
    with pytest.raises(ConfigError, match=r"env\.python: coevo\.envs\.homerules:HomeRules runs in this process"):
        make(PluginEnvConfig(type="coevo.envs.homerules:HomeRules", python=os.devnull))
