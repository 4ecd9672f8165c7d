"""Remedies: what a run gives up before a larger machine, and settings for GPUs that idle."""

import shlex

import pytest

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.models.capacity.devices import named
from coevo.tasks.preflight.forecast import forecast
from coevo.tasks.preflight.rehearse import glance
from coevo.tasks.preflight.remedy import changed_by, spread, used

LARGE = "homerules-coevo-rl-qwen3-8b"


def foreseen(machine, *overrides):
    config = load_recipe(LARGE, overrides)
    return forecast(config, glance(config, make(config.env)), named(machine))


def test_one_gpu_for_a_run_of_four_is_answered_by_fewer_processes_and_offload():
    (said,) = foreseen("1xh100").problems
    assert said.startswith("update.deepspeed.device=cuda takes 4 GPUs, and there are 1 here: set ")
    assert """update.deepspeed.processes=1 rollout.engine.replicas=1 'rollout.engine.devices=["0"]'""" in said
    assert "offload_optimizer: {device: cpu}" in said


@pytest.mark.parametrize("machine", ["1xh100", "2xa100-80"])
def test_the_proposed_settings_fit_as_a_shell_reads_them(machine):
    config = load_recipe(LARGE)
    (said,) = foreseen(machine).problems
    overrides = shlex.split(said.partition(": set ")[2])
    assert foreseen(machine, *overrides).problems == ()
    assert used(changed_by(config, tuple(overrides))) <= len(named(machine).gpus)


def test_without_room_on_the_host_adapters_are_proposed():
    overrides = ["update.deepspeed.processes=1", "rollout.engine.replicas=1", 'rollout.engine.devices=["0"]']
    (said,) = foreseen("1xl40s", *overrides).problems
    assert "policy.lora={r: 64, alpha: 64}" in said


def test_idle_gpus_are_named_with_the_settings_that_use_them():
    (said,) = foreseen("8xh100").notices
    assert said.startswith("4 of 8 GPUs are used: set update.deepspeed.processes=8 rollout.engine.replicas=8 ")
    wider = foreseen("8xh100", *spread(load_recipe(LARGE), 8))
    assert wider.notices == ()
    before, after = (sum(found.seconds.values()) for found in (foreseen("8xh100"), wider))
    assert f"for about {after:.0f} s per iteration instead of {before:.0f}" in said
    assert foreseen("4xh100").notices == ()


def test_servers_keep_their_split():
    config = load_recipe(LARGE, ['rollout.engine.devices=["0,1", "2,3"]', "rollout.engine.replicas=2"])
    assert spread(config, 6)[1:] == ("rollout.engine.replicas=3", 'rollout.engine.devices=["0,1","2,3","4,5"]')
    assert spread(config, 1) == ()
    assert spread(load_recipe("homerules-coevo-rl"), 4) == ()
