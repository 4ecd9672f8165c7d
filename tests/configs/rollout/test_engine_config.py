"""The generating engine by its type, and settings that it cannot take."""

import pytest
from support.refusal import refusal

from coevo.configs.load.load import load_recipe
from coevo.configs.rollout.rollout_config import (
    TransformersEngineConfig,
    VllmEngineConfig,
    gpus_of,
    indices_of,
    width_of,
)

RECIPE = "homerules-coevo-rl"
VLLM = "rollout.engine.type=vllm"


def engine(*overrides):
    return load_recipe(RECIPE, overrides).rollout.engine


def test_a_recipe_that_names_none_keeps_the_embedded_one_and_its_identity():
    assert engine() == TransformersEngineConfig()
    assert load_recipe(RECIPE).model_dump(mode="json")["rollout"]["engine"] == {
        "type": "transformers",
        "rows": 512,
        "threads": 1,
    }
    assert engine("rollout.engine.threads=2", "rollout.engine.rows=8") == TransformersEngineConfig(threads=2, rows=8)


def test_vllm_by_its_type():
    assert engine(VLLM) == VllmEngineConfig(type="vllm")
    assert engine(VLLM, "rollout.engine.urls=[http://a:1,http://b:2]").urls == ("http://a:1", "http://b:2")


def test_each_server_has_its_gpu():
    two = engine(VLLM, "rollout.engine.replicas=2", "rollout.engine.devices=['0','1']", "rollout.engine.sync=ipc")
    assert (two.devices, two.sync) == (("0", "1"), "ipc")


def test_gpus_are_counted_as_the_settings_name_them():
    several = engine(VLLM, "rollout.engine.replicas=3", "rollout.engine.devices=['0, 2','3,GPU-5e1f','7,2']")
    assert gpus_of(several) == ["0", "2", "3", "GPU-5e1f", "7"]
    assert indices_of(several) == {0, 2, 3, 7}
    assert width_of(several) == 2
    assert (indices_of(engine(VLLM)), width_of(engine(VLLM))) == (set(), 1)


REFUSED = {
    "another engine": (["rollout.engine.type=tgi"], "choose transformers or vllm"),
    "settings of the other one": (["rollout.engine.replicas=2"], "replicas: no such key"),
    "servers without their GPUs": ([VLLM, "rollout.engine.replicas=2", "rollout.engine.devices=['0']"], "its own"),
    "heads that vLLM has no kernel for": ([VLLM, "policy.head_dim=24"], "policy.head_dim=32"),
    "one GPU's memory, over two GPUs": ([VLLM, "rollout.engine.sync=ipc", "rollout.engine.devices=['0,1']"], "one GPU"),
    "one GPU's memory, elsewhere": ([VLLM, "rollout.engine.sync=ipc", "rollout.engine.urls=[http://a:1]"], "one GPU"),
    "servers of unequal size": (
        [VLLM, "rollout.engine.replicas=2", "rollout.engine.devices=['0,1','2']"],
        "give each server as many",
    ),
    "GPUs without their servers": ([VLLM, "rollout.engine.devices=['0','1']"], "2 entries for replicas=1"),
    "urls and GPUs of our own": ([VLLM, "rollout.engine.urls=[http://a:1]", "rollout.engine.devices=['0']"], "urls"),
    "urls and servers of our own": ([VLLM, "rollout.engine.urls=[http://a:1]", "rollout.engine.replicas=2"], "urls"),
}


@pytest.mark.parametrize(("overrides", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_in_one_line(overrides, said):
    assert said in refusal(RECIPE, overrides)
