"""Remedies: what a run gives up before a larger machine, and settings for GPUs that idle."""

import shlex
from dataclasses import replace

import pytest
from support.glanced import glanced

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.models.capacity.devices import GIB, Device, Machine, named
from coevo.models.capacity.footprint import cache
from coevo.tasks.preflight.forecast import check_fits, forecast
from coevo.tasks.preflight.memory import Lengths, needs
from coevo.tasks.preflight.remedy import Offer, changed_by, remedy, spread, used
from coevo.utilities.errors import CoevoError

LARGE = "homerules-coevo-rl-qwen3-8b"


def foreseen(machine, *overrides):
    return forecast(load_recipe(LARGE, overrides), glanced(LARGE), named(machine))


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


MIDDLE, SMALL = "homerules-coevo-rl-qwen3-0.6b", "homerules-coevo-rl"


def on_host(gib, recipe=MIDDLE, *overrides, **options):
    """Forecast on a machine without a GPU."""
    machine = Machine((), Device("cpu", int(gib * GIB), 1e11, 2e10))
    return forecast(load_recipe(recipe, overrides), glanced(recipe), machine, **options)


NONE = "update.deepspeed.device=cuda takes 1 GPU, and there are none here: "


def test_without_a_gpu_an_update_that_fits_the_host_trains_there():
    (said,) = on_host(64).problems
    assert said == NONE + "set update.deepspeed.device=cpu placement=null"
    assert on_host(64, MIDDLE, *shlex.split(said.partition(": set ")[2])).problems == ()
    four = on_host(800, LARGE).problems[0].partition(": set ")[2]
    one = ["update.deepspeed.processes=1", "placement=null", "rollout.engine.replicas=1", "rollout.engine.devices=[]"]
    assert shlex.split(four) == ["update.deepspeed.device=cpu", *one]
    assert on_host(800, LARGE, *shlex.split(four)).problems == ()


def test_without_a_gpu_and_without_room_a_larger_machine_is_named():
    # Servers of 1.1 x 2 bytes x 8.2e9 parameters are 16.8 GiB, and a probe loads 15.3 GiB more; an update has no room.
    (said,) = on_host(38, LARGE, "rollout.engine.replicas=1", "rollout.engine.devices=[]").problems
    assert said.partition("none here: ")[2] == "take a machine such as 4xa100-80"


@pytest.mark.parametrize(("gib", "smaller"), [(8, True), (2.5, False)])
def test_a_smaller_model_is_proposed_only_where_it_helps(gib, smaller):
    # The process of the loop takes 2 GiB, and that of the trainer 1 GiB, whatever the model.
    wide = ("policy.hidden_size=4096", "policy.layers=400", "policy.heads=32", "policy.kv_heads=8")
    (said,) = on_host(gib, SMALL, *wide).problems
    assert said.endswith(" a smaller model") == smaller


def test_rows_are_halved_until_they_fit():
    config = load_recipe(SMALL, ["rollout.engine.rows=96", "rollout.tasks=16", "rollout.group_size=8"])
    rehearsed = glanced(SMALL)
    machine = Machine((), Device("cpu", 64 * GIB, 1e11, 2e10))
    shape = forecast(config, rehearsed, machine).shape
    # Prompts so long that keys and values of rows decide: each row holds its prompt three times, and its answer.
    lengths = Lengths(shortest=1000, longest=200_000, answer=12, last=1000)

    def needed(rows):
        return needs(changed_by(config, (f"rollout.engine.rows={rows}",)), machine, shape, lengths)[-1].bytes

    assert needed(24) - needed(12) >= cache(shape) * 12 * (3 * 200_000 + 12)
    tight = replace(machine, host=replace(machine.host, memory=needed(12) + 1))
    assert remedy(config, tight, lengths, rehearsed.words, Offer()) == "set rollout.engine.rows=12"


BRANCH = Offer("run `coevo branch first@12 NEW ", "`", ("recipe", "policy.path", "policy", "warmstart"))


def test_a_run_that_is_there_is_answered_by_a_branch_with_settings_that_it_may_change():
    (said,) = on_host(64, offer=lambda: BRANCH).problems
    assert said == NONE + "run `coevo branch first@12 NEW update.deepspeed.device=cpu placement=null`"
    # Adapters are the remedy of a start; a branch keeps its policy.
    overrides = ["update.deepspeed.processes=1", "rollout.engine.replicas=1", 'rollout.engine.devices=["0"]']
    config, machine = load_recipe(LARGE, overrides), named("1xl40s")
    (start,), (branch,) = (
        forecast(config, glanced(LARGE), machine, offer).problems for offer in (Offer, lambda: BRANCH)
    )
    assert "set 'policy.lora={r: 64, alpha: 64}'" in start
    more = "update.deepspeed.processes=4 rollout.engine.replicas=4"
    listed = """'rollout.engine.devices=["0","1","2","3"]'`"""
    asked = f"take a machine such as 4xa100-80 and run `coevo branch first@12 NEW {more} {listed}"
    assert branch.endswith(f"): {asked}")


def test_prompts_that_a_branch_makes_shorter_are_refused_with_it(tmp_path):
    config = load_recipe(SMALL, ["policy.max_positions=243"])
    with pytest.raises(CoevoError) as start:
        check_fits(config, make(config.env), tmp_path)
    assert str(start.value).endswith("or set context.observation_tokens, which shortens observations")
    with pytest.raises(CoevoError) as branch:
        check_fits(config, make(config.env), tmp_path, lambda: BRANCH)
    assert str(branch.value) == f"{start.value}: run `coevo branch first@12 NEW KEY=VALUE`"


def test_idle_gpus_are_not_named_where_an_writer_model_leaves_no_room(tmp_path):
    writer_model = (
        f"{{type: frozen, path: {tmp_path}/none, engine: {{type: vllm, devices: ['1'], gpu_memory_utilization: 0.6}}}}"
    )
    config = load_recipe(MIDDLE, ["rollout.engine.gpu_memory_utilization=0.5", f"bank.writer.model={writer_model}"])
    assert used(config) == 2
    found = forecast(config, glanced(MIDDLE), named("4xh100"))
    assert (found.problems, [said for said in found.notices if "GPUs are used" in said]) == ((), [])
