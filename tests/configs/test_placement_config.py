"""Where a run computes: what does not agree is refused with the remedy, and what is not set is not written down."""

import pytest
from support.refusal import refusal

from coevo.configs.load.load import load_recipe

SMALL, SHARED, SEPARATE = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b", "homerules-jerp-qwen2.5-7b"


def test_a_placement_that_is_not_set_is_not_written():
    assert "placement" not in load_recipe(SMALL).model_dump(mode="json")


@pytest.mark.parametrize(
    ("recipe", "overrides", "says"),
    [
        (SMALL, ["placement.type=shared"], "rollout.engine.type=transformers has none: set rollout.engine.type=vllm"),
        (SMALL, ["placement.type=machines"], "set rollout.engine.urls, or update.deepspeed.hostfile"),
        (SHARED, ["update.deepspeed.device=cpu"], "set update.deepspeed.device=cuda"),
        (SHARED, ["update=null"], "update=null has none: leave placement out"),
        (SHARED, ["update.deepspeed.processes=1", "update.deepspeed.hostfile=hosts"], "set placement={type: machines}"),
        (SHARED, ["placement.sleep=3"], "Input should be 1 or 2"),
        (SEPARATE, ["placement.update=[0]"], "share GPU 0: give either its own, or type=shared"),
        (SHARED, ["placement.type=machines"], "names no other machine: set rollout.engine.urls"),
        (SHARED, ["placement.type=machines", "update=null"], "names no other machine: set rollout.engine.urls"),
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
            "rollout.engine.urls names others: set placement={type: machines}",
        ),
    ],
)
def test_what_does_not_agree_is_one_line(recipe, overrides, says):
    assert says in refusal(recipe, overrides)


def test_machines_take_servers_by_url_and_a_trainer_by_hostfile():
    elsewhere = ["placement.type=machines", "rollout.engine.devices=[]", "rollout.engine.replicas=1"]
    served = load_recipe(SHARED, [*elsewhere, "rollout.engine.urls=['http://there:8000']"])
    assert (served.placement.type, served.placement.gib) == ("machines", None)
    hosts = ["placement={type: machines, gib: 80.0}", "update.deepspeed.processes=1", "update.deepspeed.hostfile=hosts"]
    assert load_recipe(SHARED, hosts).placement.gib == 80
