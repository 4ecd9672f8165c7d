"""Weights that are nonsense are refused in one line before anything is played with them; others are not."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.policies import SMALL, WORDS, llama, qwen, qwen2

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.models.policy.policy import build, save
from coevo.models.policy.sound import check_files, check_log_probs, check_values, load_sound
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

NAMES = [name for name, _ in qwen().model.named_parameters()]


def overflow(weight):
    weight.fill_(3e38)
    weight[..., ::2] *= -1


def spot(value):
    def change(weight):
        weight.view(-1)[weight.numel() // 3] = value

    return change


VALUES = {
    "NaN": lambda weight: weight.fill_(torch.nan),
    "infinite": lambda weight: weight.fill_(torch.inf),
    "one NaN": spot(torch.nan),
    "one infinite": spot(torch.inf),
    "one of minus infinity": spot(-torch.inf),
    "overflow": overflow,
}
"""Changes of one tensor after which log-probabilities are not finite."""
TENSORS = {
    "missing": lambda name, tensors: tensors.pop(name),
    "of integers": lambda name, tensors: tensors.update({name: tensors[name].to(torch.int32)}),
    "of bytes": lambda name, tensors: tensors.update({name: tensors[name].to(torch.uint8)}),
    "in half precision": lambda name, tensors: tensors.update({name: tensors[name].to(torch.float16)}),
    "in bfloat16": lambda name, tensors: tensors.update({name: tensors[name].to(torch.bfloat16)}),
    "longer": lambda name, tensors: tensors.update({name: torch.cat([tensors[name]] * 2)}),
    "shorter": lambda name, tensors: tensors.update({name: tensors[name][:-1].clone()}),
    "a number": lambda name, tensors: tensors.update({name: torch.zeros(())}),
    "flat": lambda name, tensors: tensors.update({name: tensors[name].reshape(1, -1).contiguous()}),
}
"""Changes of one tensor in a file."""
SETTINGS = (
    {"num_hidden_layers": 3}, {"num_hidden_layers": 1}, {"hidden_size": 64}, {"num_attention_heads": 8},
    {"num_key_value_heads": 4}, {"head_dim": 16}, {"intermediate_size": 96}, {"model_type": "llama"},
    {"model_type": "gpt2"}, {"model_type": None}, {"hidden_size": "32"}, {"hidden_size": -1}, {"num_hidden_layers": []},
    {"model_type": "\x1b[2J"}, {"intermediate_size": 48.5}, {"dtype": "float16"}, {"dtype": "bfloat16"},
    {"dtype": None},
)  # fmt: skip
"""Changes of the settings beside the weights."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved") / "policy"
    save(qwen(), directory)
    return directory


@pytest.fixture
def directory(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "policy")


def refused(call, *arguments):
    with pytest.raises(CoevoError) as caught:
        call(*arguments)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_not_numbers_are_refused(directory, name, value):
    policy = qwen()
    with torch.no_grad():
        VALUES[value](dict(policy.model.named_parameters())[name])
    assert "not finite" in refused(check_log_probs, policy, directory)
    save(policy, directory.with_name("other"))
    assert "not finite" in refused(check_values, directory.with_name("other"))


@pytest.mark.parametrize("change", TENSORS)
@pytest.mark.parametrize("name", NAMES)
def test_tensors_that_do_not_fit_are_refused_by_the_header(directory, name, change):
    tensors = load_file(directory / "model.safetensors")
    TENSORS[change](name, tensors)
    save_file(tensors, directory / "model.safetensors")
    refused(check_files, directory, SMALL)


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
def test_another_architecture_is_refused_by_its_settings(directory, changed):
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    assert "another architecture" in refused(check_files, directory, SMALL)


@pytest.mark.parametrize("other", [llama, qwen2, lambda: qwen(layers=1), lambda: qwen(hidden_size=64, heads=2)])
def test_a_whole_policy_of_another_architecture_is_refused(tmp_path, other):
    save(other(), tmp_path / "policy")
    assert "another architecture" in refused(load_sound, tmp_path / "policy", SMALL)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_ends_early_is_refused(directory, share):
    file = directory / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    refused(load_sound, directory, SMALL)


def test_whole_weights_are_loaded_as_they_are(directory, tmp_path):
    policy = load_sound(directory, SMALL)
    assert all(
        torch.equal(one, other) for one, other in zip(policy.model.parameters(), qwen().model.parameters(), strict=True)
    )
    path = PretrainedPolicyConfig(type="pretrained", path=str(directory), lora=LoraConfig())
    save(build(path, WORDS, key(0)), tmp_path / "adapted")
    assert load_sound(tmp_path / "adapted", path).model.peft_config
    whole = PretrainedPolicyConfig(type="pretrained", path=str(directory))
    load_sound(directory, whole)
    save(llama(), tmp_path / "llama")
    assert "another architecture" in refused(load_sound, tmp_path / "llama", whole)
    load_sound(tmp_path / "llama", PretrainedPolicyConfig(type="pretrained", path="nobody/elsewhere"))


ADAPTERS = (
    {"lora_alpha": 0}, {"lora_alpha": 6400}, {"lora_alpha": -64}, {"r": 8}, {"r": 0}, {"use_rslora": True},
    {"alpha_pattern": {"q_proj": 0}}, {"rank_pattern": {"q_proj": 1}}, {"target_modules": ["q_proj"]},
    {"target_modules": []}, {"peft_type": "IA3"}, {"peft_type": "\x1b[2J"}, {"use_dora": True}, {"bias": "all"},
    {"modules_to_save": ["lm_head"]}, {"layers_to_transform": [0]}, {"layer_replication": [[0, 1], [0, 1]]},
    {"fan_in_fan_out": True}, {"peft_type": None}, {"lora_alpha": "64"}, {"lora_alpha": None}, {"r": 2**40},
)  # fmt: skip
"""Settings of adapters that are not the run's; PEFT follows most of them without a word."""


@pytest.mark.parametrize("changed", ADAPTERS, ids=ascii)
def test_adapters_with_other_settings_than_the_run_are_refused(adapted, changed):
    config, folder = adapted
    check_files(folder, config)
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    if "target_modules" not in changed:  # the weights decide
        refused(check_files, folder, config)
    tensors = load_file(folder / "adapter_model.safetensors")
    fewer = {name: tensor for name, tensor in tensors.items() if "q_proj" in name}
    save_file(fewer, folder / "adapter_model.safetensors")
    assert refused(check_files, folder, config)


@pytest.fixture
def adapted(directory, tmp_path):
    config = PretrainedPolicyConfig(type="pretrained", path=str(directory), lora=LoraConfig())
    save(build(config, WORDS, key(0)), tmp_path / "adapted")
    return config, tmp_path / "adapted"


def test_adapters_belong_to_a_run_that_has_some(adapted):
    config, folder = adapted
    assert "the run has none" in refused(check_files, folder, config.model_copy(update={"lora": None}))
    assert "the run has none" in refused(check_files, folder, SMALL)
    assert "r is " in refused(check_files, folder, config.model_copy(update={"lora": LoraConfig(r=8)}))
    check_files(folder, PretrainedPolicyConfig(type="pretrained", path=str(folder)))  # evaluated by its name


def test_adapters_that_are_nonsense_are_refused(directory, tmp_path):
    config = PretrainedPolicyConfig(type="pretrained", path=str(directory), lora=LoraConfig())
    adapted = tmp_path / "adapted"
    save(build(config, WORDS, key(0)), adapted)
    tensors = load_file(adapted / "adapter_model.safetensors")
    name = next(name for name in tensors if "lora_B" in name)
    for changed in (
        {**tensors, name: torch.full_like(tensors[name], torch.nan)},
        {other: tensor for other, tensor in tensors.items() if other != name},
        {**tensors, name: tensors[name].to(torch.int32)},
        {**tensors, name: torch.cat([tensors[name]] * 2)},
    ):
        save_file(changed, adapted / "adapter_model.safetensors")
        refused(load_sound, adapted, config)
