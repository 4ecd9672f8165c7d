"""GPUs that servers and trainer share: those that do not exist, and a frozen writer model's beside the others."""

import shlex
from dataclasses import replace

import pytest
from support.glanced import glanced
from support.policies import qwen

from coevo.configs.load.load import load_recipe
from coevo.models.capacity.devices import GIB, KNOWN, named
from coevo.models.policy.policy import save
from coevo.tasks.preflight.forecast import forecast

LARGE, SMALL = "homerules-coevo-rl-qwen3-8b", "homerules-coevo-rl-qwen3-0.6b"
"""A run on four GPUs, and one that shares a single GPU."""
GPU = KNOWN["h100"].memory
USABLE = int(GPU * 0.95)


def foreseen(recipe, machine, *overrides):
    return forecast(load_recipe(recipe, overrides), glanced(recipe), named(machine))


def need(found, where):
    (one,) = (each for each in found.needs if each.where == where)
    return one, {item.what: item for item in one.parts}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Directory of a small model."""
    directory = tmp_path_factory.mktemp("writer_model") / "model"
    save(qwen(1), directory)
    return directory


def frozen(path, engine):
    return f"bank.writer={{type: model-contrast, model: {{type: frozen, path: {path}, engine: {{{engine}}}}}}}"


def writer_model(found):
    """Bytes of the writer model's server on the fullest GPU of the update."""
    return need(found, "each GPU of the update")[1]["the writer model's server"].bytes


@pytest.mark.parametrize("placement", ["null", "{type: shared}"])
def test_servers_on_gpus_that_do_not_exist_are_refused(placement):
    two = ("rollout.engine.replicas=2", "rollout.engine.devices=['0','1']", f"placement={placement}")
    sizes = ("rollout.engine.gpu_memory_utilization=0.3",)
    (said,) = foreseen(SMALL, "h100", *two, *sizes).problems
    assert said.startswith("rollout.engine.devices names GPU 1, and the last one here is GPU 0: set ")
    overrides = shlex.split(said.partition(": set ")[2])
    assert 'rollout.engine.devices=["0"]' in overrides
    assert foreseen(SMALL, "h100", *two, *sizes, *overrides).problems == ()
    assert foreseen(SMALL, "2xh100", *two, *sizes).problems == ()


def test_servers_alone_on_gpus_that_do_not_exist_are_refused_with_fewer_servers():
    four = ("rollout.engine.replicas=2", "rollout.engine.devices=['0,1','2,3']", "placement=null")
    (said,) = foreseen(SMALL, "3xh100", *four, "update.deepspeed.device=cpu").problems
    fewer = """set rollout.engine.replicas=1 'rollout.engine.devices=["0,1"]'"""
    assert said == f"rollout.engine.devices names GPU 3, and the last one here is GPU 2: {fewer}"


def test_an_writer_model_on_a_gpu_that_does_not_exist_is_refused(model):
    one = frozen(model, "type: vllm, devices: ['1'], gpu_memory_utilization: 0.1")
    (said,) = foreseen(SMALL, "h100", one).problems
    assert said.startswith("bank.writer.model.engine.devices names GPU 1, and the last one here is GPU 0: set ")
    overrides = shlex.split(said.partition(": set ")[2])
    assert overrides[:2] == ["bank.writer.model.engine.replicas=1", 'bank.writer.model.engine.devices=["0"]']
    assert foreseen(SMALL, "h100", one, *overrides).problems == ()


def test_no_server_of_this_machine_is_beside_a_trainer_on_others():
    def away(memory=""):
        return ("update.deepspeed.processes=4", f"placement={{type: ray, pools: {{trainer: {{gpus: 1{memory}}}}}}}")

    here = foreseen(LARGE, "4xa100-80", *away())
    alone, parts = need(here, "each GPU of the update")
    assert not [what for what in parts if "server" in what]
    # A run that fits GPUs which are as large as it needs, beside a server of 0.9 x 79 GiB in this machine.
    gib = alone.bytes / 0.95 / GIB + 0.01
    assert gib < 79
    served = ("rollout.engine.gpu_memory_utilization=0.9",)
    assert foreseen(LARGE, "4xa100-80", *away(f", gib: {gib}"), *served).problems == ()
    less = foreseen(LARGE, "4xa100-80", *away(f", gib: {gib - 0.1}"), *served)
    assert less.problems[0].startswith("each GPU of the update has ")


@pytest.mark.parametrize("placement", ["null", "{type: shared}"])
def test_a_frozen_writer_model_on_a_gpu_of_the_update_counts_always(model, placement):
    sizes = (f"placement={placement}", "rollout.engine.gpu_memory_utilization=0.2")
    with_writer_model = foreseen(
        SMALL, "h100", *sizes, frozen(model, "type: vllm, devices: ['0'], gpu_memory_utilization: 0.2")
    )
    alone, _ = need(foreseen(SMALL, "h100", *sizes), "each GPU of the update")
    both, parts = need(with_writer_model, "each GPU of the update")
    assert parts["the writer model's server"].phase == "always"
    assert writer_model(with_writer_model) == int(0.2 * GPU)
    assert both.bytes == alone.bytes + int(0.2 * GPU)
    assert with_writer_model.problems == ()
    elsewhere = frozen(model, "type: vllm, urls: ['http://a:1']")
    assert need(foreseen(SMALL, "h100", *sizes, elsewhere), "each GPU of the update")[0].bytes == alone.bytes


def test_a_frozen_writer_model_that_does_not_fit_is_refused_with_a_smaller_share(model):
    full = frozen(model, "type: vllm, devices: ['0']")  # 0.9 of the GPU
    (said,) = foreseen(SMALL, "h100", "rollout.engine.gpu_memory_utilization=0.2", full).problems
    assert said.startswith(f"each GPU of the update has {USABLE / GIB:.1f} GiB, and ")
    assert f"the writer model's server {0.9 * 79:.1f}" in said
    overrides = shlex.split(said.partition(": set ")[2])
    assert overrides == ["bank.writer.model.engine.gpu_memory_utilization=0.4"]
    settings = ("rollout.engine.gpu_memory_utilization=0.2", full, *overrides)
    assert foreseen(SMALL, "h100", *settings).problems == ()
    (idle,) = foreseen(SMALL, "2xh100", "rollout.engine.gpu_memory_utilization=0.2", full).problems
    free = """: set bank.writer.model.engine.replicas=1 'bank.writer.model.engine.devices=["1"]'"""
    assert idle.endswith(free)


def test_the_model_of_a_frozen_writer_model_needs_its_share(model):
    tiny = frozen(model, "type: vllm, devices: ['0'], gpu_memory_utilization: 0.01")
    (said,) = foreseen(SMALL, "h100", "rollout.engine.gpu_memory_utilization=0.2", tiny).problems
    # 0.01 of 79 GiB, less than the 1.5 GiB of CUDA alone.
    assert said.startswith("the writer model's share of its GPU has 0.8 GiB, and 1.5 are needed (the writer model: ")


def test_servers_of_run_and_writer_model_share_a_gpu_without_an_update(model):
    here = ("placement={type: separate, update: [1]}", "rollout.engine.devices=['0']", "rollout.engine.replicas=1")
    for share, fits in ((0.35, True), (0.36, False)):
        one = frozen(model, f"type: vllm, devices: ['0'], gpu_memory_utilization: {share}")
        found = foreseen(SMALL, "2xh100", *here, "rollout.engine.gpu_memory_utilization=0.6", one)
        both, _ = need(found, "each GPU of the writer model")
        assert both.bytes == int(0.6 * GPU) + int(share * GPU)
        assert (both.there, both.fits, found.problems == ()) == (USABLE, fits, fits)
        assert not [item for item in need(found, "each GPU of the update")[0].parts if "server" in item.what]


def test_a_frozen_writer_model_that_is_not_downloaded_yet_takes_its_share(tmp_path):
    absent = frozen(tmp_path / "none", "type: vllm, devices: ['0'], gpu_memory_utilization: 0.2")
    found = foreseen(SMALL, "h100", "rollout.engine.gpu_memory_utilization=0.2", absent)
    assert writer_model(found) == int(0.2 * GPU)


def test_an_writer_model_in_this_process_takes_no_gpu(model):
    found = foreseen(SMALL, "h100", frozen(model, "type: transformers"))
    assert not [item for each in found.needs for item in each.parts if item.what == "the writer model's server"]


def test_on_a_machine_without_gpus_servers_compute_on_the_cpu():
    given = (
        "rollout.engine.replicas=1",
        "rollout.engine.devices=['3']",
        "placement=null",
        "update.deepspeed.device=cpu",
    )
    machine = replace(named("h100"), gpus=())
    assert forecast(load_recipe(SMALL, given), glanced(SMALL), machine).problems == ()
