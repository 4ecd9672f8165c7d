import json
import os
import shutil

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from support.policies import qwen

from coevo.models.engines.vllm.vllm_engine import serve_adapters, serve_model
from coevo.models.policy.policy import load, save
from coevo.utilities.errors import CoevoError


def untied(seed):
    """A policy whose output layer has weights of its own."""
    policy = qwen(seed, init_std=0.3)
    model = policy.model
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone() + 0.1)
    return policy


def test_tied_embeddings_are_served_as_weights_of_their_own(tmp_path):
    policy = qwen(1, init_std=0.3)
    save(policy, tmp_path / "policy")
    served = serve_model(tmp_path / "policy", tmp_path / "served")
    shutil.rmtree(tmp_path / "policy")  # the run commits it elsewhere
    assert not json.loads((served / "config.json").read_text())["tie_word_embeddings"]
    weights = {name: tensor for path in served.glob("*.safetensors") for name, tensor in load_file(path).items()}
    assert weights["lm_head.weight"].equal(policy.model.get_input_embeddings().weight)
    assert weights.keys() == {name for name, _ in untied(1).model.named_parameters()}


def test_untied_ones_are_served_as_they_are(tmp_path):
    policy = untied(1)
    save(policy, tmp_path / "policy")
    served = serve_model(tmp_path / "policy", tmp_path / "served")
    assert load(served).model.lm_head.weight.equal(policy.model.lm_head.weight)
    assert len(list(served.glob("*.safetensors"))) == 1


def test_files_of_another_user_or_mount_are_copied(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    save(untied(1), tmp_path / "policy")
    monkeypatch.setattr(os, "link", refused)
    served = serve_model(tmp_path / "policy", tmp_path / "served")
    assert (served / "model.safetensors").read_bytes() == (tmp_path / "policy" / "model.safetensors").read_bytes()


def test_adapters_are_served_without_the_model_they_are_for(tmp_path):
    base = qwen(1)
    adapted = get_peft_model(base.model, LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    adapted.save_pretrained(tmp_path / "policy")
    served = serve_adapters(tmp_path / "policy", tmp_path / "served")
    assert {path.name for path in served.iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}


def test_a_directory_without_weights_is_named(tmp_path):
    save(qwen(), tmp_path / "policy")
    (tmp_path / "policy" / "model.safetensors").unlink()
    with pytest.raises(CoevoError, match="no such weights"):
        serve_model(tmp_path / "policy", tmp_path / "served")
