"""Methods have the values of their papers."""

from omegaconf import OmegaConf

from configs.load import ROOT


def method(name):
    return OmegaConf.to_container(OmegaConf.load(ROOT / "methods" / f"{name}.yaml"))


def test_jerp_has_the_values_of_table_1_and_those_decided():
    given = method("jerp")
    rollout, bank, update = given["rollout"], given["bank"], given["update"]
    # Learning rate 3e-6, groups of 8, discount 0.95, batches of 256 episodes, at most 50 steps.
    assert update["optimizer"] == {"lr": 3e-6}
    assert (rollout["group_size"], rollout["tasks"] * rollout["group_size"], rollout["max_turns"]) == (8, 256, 50)
    assert update["reward"] == {"type": "discounted", "gamma": 0.95}
    # Equations 17 and 20.
    assert update["advantage"] == {"type": "grpo", "ddof": 0}
    assert update["loss"]["aggregation"] == "traj-mean-step-mean"
    # Where the paper gives no value.
    assert (bank["every"], bank["retrieval"]["k"], update["loss"]["kl_coefficient"]) == (1, 8, 0.01)
    scores = {"initial": 1.0, "up": 1.0, "down": 1.0, "threshold": 0.5, "capacity": 32}
    assert bank["admission"] == {"type": "edits", **scores}
