"""Where a run computes: what does not agree is refused with the remedy, and what is not set is not written down."""

import pytest
from support.refusal import refusal

from coevo.configs.load.load import load_recipe
from coevo.configs.placement_config import engine_pool, trainer_pool

SMALL, SHARED, SEPARATE = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b", "homerules-jerp-qwen2.5-7b"
RAY = "placement={type: ray, pools: {trainer: {}}}"
ENGINES = "placement={type: ray, pools: {engines: {}}}"


def test_a_placement_that_is_not_set_is_not_written():
    assert "placement" not in load_recipe(SMALL).model_dump(mode="json")


@pytest.mark.parametrize(
    ("recipe", "overrides", "says"),
    [
        (SMALL, ["placement.type=shared"], "rollout.engine.type=transformers has none: set rollout.engine.type=vllm"),
        (
            SMALL,
            ["placement={type: ray, pools: {}}"],
            "none is set: set placement.pools.environments={} or",
        ),
        (SMALL, ["placement={type: ray, address: '*', pools: {trainer: {}}}"], "address"),
        (SMALL, ["placement={type: ray, pools: {engines: {}}}"], "rollout.engine.type=transformers has none: set"),
        (
            SMALL,
            [ENGINES, "rollout.engine={type: vllm, urls: ['http://a:1']}"],
            "urls names others: leave",
        ),
        (SMALL, [ENGINES, "rollout.engine={type: vllm, devices: ['0']}"], "gives each server GPUs of its node: leave"),
        (SMALL, [ENGINES, "rollout.engine={type: vllm, sync: nccl}"], "set rollout.engine.sync to files or gloo"),
        (SMALL, [RAY, "update=null"], "update=null has none: leave it out"),
        (SMALL, [RAY, "update.deepspeed.device=cuda"], "do not agree: set gpus=1 and device=cuda, or gpus=0"),
        (SHARED, ["update.deepspeed.device=cpu"], "set update.deepspeed.device=cuda"),
        (SHARED, ["update=null"], "update=null has none: leave placement out"),
        (SHARED, ["placement.sleep=3"], "Input should be 1 or 2"),
        (SEPARATE, ["placement.update=[0]"], "share GPU 0: give either its own, or type=shared"),
        (
            SEPARATE,
            ["placement.update=[1, 0]", "rollout.engine.devices=['0,1']", "update.deepspeed.processes=2"],
            "share GPU 0: give either its own",
        ),
        (SEPARATE, ["placement.update=[1, 2]"], "has 2 GPUs for update.deepspeed.processes=1"),
        (SEPARATE, ["placement.update=[1, 1]", "update.deepspeed.processes=2"], "has 1 GPUs"),
        (SEPARATE, ["rollout.engine.devices=[]"], "set rollout.engine.devices, for example ['0']"),
        (
            SEPARATE,
            ["rollout.engine.devices=[]", "rollout.engine.urls=['http://there:8000']"],
            "rollout.engine.urls names others: leave placement out",
        ),
    ],
)
def test_what_does_not_agree_is_one_line(recipe, overrides, says):
    assert says in refusal(recipe, overrides)


def test_pools_of_a_cluster_that_are_not_set_stay_here():
    placement = load_recipe(SMALL, ["placement={type: ray, pools: {environments: {per_node: 2}}}"]).placement
    assert (placement.address, placement.pools.environments.per_node, placement.pools.trainer) == ("auto", 2, None)
    assert trainer_pool(placement) is None
    assert engine_pool(placement) is None
    assert "engines" not in placement.model_dump(mode="json")["pools"]
    assert trainer_pool(load_recipe(SMALL, [RAY]).placement).gib is None
