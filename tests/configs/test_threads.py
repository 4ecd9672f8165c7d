"""Threads are chosen once, from the usable cores and OMP_NUM_THREADS, and recorded; load changes nothing."""

import json
import os

import pytest

from coevo.configs import threads
from coevo.configs.load.load import load_recipe
from coevo.configs.threads import usable_cores, with_threads
from coevo.lineage.workspace import Workspace

SMALL, PRETRAINED = "homerules-coevo-rl", "textworld-coevo-rl-qwen3-0.6b"
SERVED = "homerules-coevo-rl-qwen3-8b"
PROCESSES = ("update.deepspeed.processes=4", "update.deepspeed.zero_stage=1")


@pytest.fixture
def on(monkeypatch):
    """A machine with so many usable cores, and OMP_NUM_THREADS."""

    def machine(cores, wanted):
        monkeypatch.setattr(threads, "usable_cores", lambda: cores)
        if wanted is None:
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OMP_NUM_THREADS", wanted)

    return machine


@pytest.mark.parametrize(
    ("recipe", "overrides", "cores", "wanted", "chosen"),
    [
        (SMALL, [], 8, None, 1),
        (SMALL, [], 8, "1", 1),
        (SMALL, [], 8, "4", 4),
        (SMALL, [], 2, "4", 2),
        (SMALL, [], 1, "4", 1),
        (SMALL, ["rollout.engine.threads=3"], 2, "1", 3),
        (SMALL, ["rollout.engine.threads=1"], 8, "4", 1),
        (PRETRAINED, [], 8, None, 8),
        (PRETRAINED, [], 8, "2", 2),
        (PRETRAINED, [], 1, None, 1),
        (PRETRAINED, [], 9, "3,2", 3),
        (PRETRAINED, [], 8, "", 8),
        (PRETRAINED, [], 8, "0", 8),
        (PRETRAINED, [], 8, "-2", 8),
        (PRETRAINED, [], 8, "many", 8),
        (PRETRAINED, PROCESSES, 8, None, 2),
        (PRETRAINED, PROCESSES, 2, None, 1),
        (SERVED, [], 64, None, 1),
        (SERVED, [], 64, "16", 16),
    ],
)
def test_threads_follow_cores_and_the_variable_unless_they_are_set(on, recipe, overrides, cores, wanted, chosen):
    on(cores, wanted)
    config = with_threads(load_recipe(recipe, overrides))
    assert config.rollout.engine.threads == chosen
    on(cores + 1, "7")
    assert with_threads(config) == config, "a number is chosen once"


def test_a_run_keeps_the_number_of_its_creation(on, tmp_path, monkeypatch):
    on(4, "3")
    paths = Workspace(tmp_path).create("first", load_recipe(SMALL))
    on(16, "8")
    monkeypatch.setattr(os, "getloadavg", lambda: (500.0, 500.0, 500.0))
    assert paths.read_config().rollout.engine.threads == 3
    assert json.loads(paths.config.read_text())["rollout"]["engine"]["threads"] == 3
    assert with_threads(paths.read_config()) == paths.read_config()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "1600000 100000"}, 8),
        ({"cpu.max": "350000 100000"}, 3),
        ({"a/cpu.max": "max 100000", "cpu.max": "300000 100000"}, 3),
        ({"a/cpu.max": "100000 100000", "cpu.max": "300000 100000"}, 1),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu.max": "100000 0"}, 8),
        ({"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_usable_cores_are_those_of_the_affinity_up_to_the_quota(tmp_path, monkeypatch, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = threads._read
    lines = "3:cpu,cpuacct:/a\n2:cpuset:/b\n0::/a\n"
    monkeypatch.setattr(threads, "_read", lambda path: lines if str(path) == "/proc/self/cgroup" else read(path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert usable_cores(tmp_path) == cores
