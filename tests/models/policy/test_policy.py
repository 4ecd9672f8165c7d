import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from peft import LoraConfig as PeftLora
from peft import get_peft_model
from safetensors.torch import load_file
from support.kept import contents
from support.policies import llama, qwen

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig, ScratchPolicyConfig
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, bundle, load, load_weights, outline, save
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

IDS = torch.tensor([[7, 8, 9, 10]])


def logits(policy):
    with torch.inference_mode():
        return policy.model(input_ids=IDS).logits


def adapted(base, seed=0, **settings):
    """A LoRA policy whose adapters do something (their second halves start as zeros)."""
    config = PretrainedPolicyConfig(type="pretrained", path=str(base), lora=LoraConfig(r=2), **settings)
    policy = build(config, (), key(seed))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return policy


@pytest.fixture
def base(tmp_path):
    save(llama(), tmp_path / "base")
    return tmp_path / "base"


def files(directory):
    return {path.name for path in directory.iterdir()}


def test_scratch_has_the_size_of_the_recipe():
    policy = build(ScratchPolicyConfig(), [f"w{number}" for number in range(102)], key(1))
    # Embeddings 108 x 96; a layer: q, k, v and o 96x96, three 96x192, norms 2x96 + 2x32; last norm 96.
    layer = 4 * 96 * 96 + 3 * 96 * 192 + 2 * 96 + 2 * 32
    assert sum(parameter.numel() for parameter in policy.model.parameters()) == 108 * 96 + 2 * layer + 96
    assert {parameter.dtype for parameter in policy.model.parameters()} == {torch.float32}
    assert policy.model.get_output_embeddings().weight is policy.model.get_input_embeddings().weight
    assert policy.model.config._attn_implementation == "sdpa"


def test_weights_are_a_function_of_the_key_and_leave_other_draws_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again, other = qwen(1), qwen(1), qwen(2)
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(logits(first), logits(again))
    assert not torch.equal(logits(first), logits(other))


def test_a_bundle_needs_nothing_else(tmp_path, base):
    policy = adapted(base)
    save(policy, tmp_path / "adapters")
    bundle(tmp_path / "adapters", tmp_path / "bundle")
    shutil.rmtree(base)
    assert torch.equal(logits(policy), logits(load(tmp_path / "bundle")))
    bundle(tmp_path / "bundle", tmp_path / "again")
    assert torch.equal(logits(policy), logits(load(tmp_path / "again")))


def test_round_trip_is_exact_and_holds_no_pickle(tmp_path):
    policy = qwen()
    save(policy, tmp_path / "policy")
    again = load(tmp_path / "policy")
    assert torch.equal(logits(policy), logits(again))
    assert again.tokenizer.get_vocab() == policy.tokenizer.get_vocab()
    assert {name.rpartition(".")[2] for name in files(tmp_path / "policy")} <= {"json", "safetensors", "jinja"}


@pytest.mark.parametrize("read", [load, outline])
def test_adapters_whose_base_is_elsewhere_name_it_and_a_link_will_do(tmp_path, base, read):
    save(adapted(base), tmp_path / "adapters")
    mine = base.rename(tmp_path / "mine")
    with pytest.raises(CoevoError, match=rf"base model {base}, which is not on this machine: .* `ln -s FOLDER {base}`"):
        read(tmp_path / "adapters")
    base.symlink_to(mine)
    assert read(tmp_path / "adapters").tokenizer.get_vocab()


@pytest.mark.full
def test_files_of_adapters_do_not_depend_on_the_order_of_sets(tmp_path, base):
    script = (
        "import sys, json; from pathlib import Path; from coevo.configs.policy_config import *; "
        "from coevo.models.policy.policy import *; from coevo.records.draws import key\n"
        "base, into, *chosen = sys.argv[1:]\n"
        "for number, targets in enumerate(chosen):\n"
        "    lora, into_it = LoraConfig.model_validate_json(targets), Path(into, str(number))\n"
        "    policy = build(PretrainedPolicyConfig(type='pretrained', path=base, lora=lora), (), key(0))\n"
        "    save(policy, into_it); save(load(into_it), into_it / 'again')\n"
    )
    chosen = ["all-linear", ["v_proj", "q_proj", "down_proj", "up_proj", "o_proj"]]
    loras = [json.dumps({"r": 2, "target_modules": targets}) for targets in chosen]
    for seed in "12":
        line = [sys.executable, "-c", script, str(base), str(tmp_path / "at" / seed), *loras]
        subprocess.run(line, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    for number in range(len(chosen)):
        one, other = (tmp_path / "at" / seed / str(number) for seed in "12")
        assert contents(one / "again").items() <= contents(one).items()
        assert contents(one) == contents(other)
        settings = json.loads((one / "adapter_config.json").read_text())
        assert settings["target_modules"] == sorted(settings["target_modules"])


def test_the_settings_of_adapters_are_stored_in_order(tmp_path, base):
    policy = adapted(base)
    names = policy.model.active_peft_config.target_modules
    assert isinstance(names, set)
    save(policy, tmp_path / "lora")
    settings = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())
    assert settings["target_modules"] == sorted(names) != []
    assert list(settings) == sorted(settings)


def test_adapters_are_kept_without_their_base(base, tmp_path):
    policy = adapted(base)
    save(policy, tmp_path / "lora")
    again = load(tmp_path / "lora")
    assert torch.equal(logits(policy), logits(again))
    assert not torch.equal(logits(policy), logits(load(base)))
    assert "adapter_model.safetensors" in files(tmp_path / "lora")
    assert "model.safetensors" not in files(tmp_path / "lora")
    trained = {name for name, parameter in again.model.named_parameters() if parameter.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)


@pytest.mark.parametrize(("stored", "dtype"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_adapters_compute_in_the_precision_of_their_run_whatever_their_base_is_stored_in(tmp_path, stored, dtype):
    save(Policy(llama().model.to(getattr(torch, stored)), llama().tokenizer), tmp_path / "base")
    policy = adapted(tmp_path / "base", dtype=dtype)
    save(policy, tmp_path / "lora")
    bundle(tmp_path / "lora", tmp_path / "bundle")
    for directory in ("lora", "bundle"):
        again = load(tmp_path / directory)
        assert again.model.dtype == getattr(torch, dtype)
        assert torch.equal(logits(policy), logits(again))


def test_adapters_that_name_no_precision_compute_in_that_of_their_base(tmp_path, base):
    save(adapted(base), tmp_path / "lora")
    (tmp_path / "lora" / "base_dtype").unlink()
    assert load(tmp_path / "lora").model.dtype == torch.float32
    (tmp_path / "lora" / "base_dtype").write_text("float32; " * 10**6)
    with pytest.raises(CoevoError, match=r"base_dtype has 'float32; float32; fl': it should name one of float32, "):
        load(tmp_path / "lora")


def test_new_weights_and_adapters_replace_the_old(base, tmp_path):
    for name, policy, newer in (("full", qwen(1), qwen(2)), ("lora", adapted(base, 1), adapted(base, 2))):
        assert not torch.equal(logits(policy), logits(newer))
        save(newer, tmp_path / name)
        load_weights(policy, tmp_path / name)
        assert torch.equal(logits(policy), logits(newer))


@pytest.mark.parametrize("change", [{"layers": 3}, {"layers": 1}, {"hidden_size": 16}])
def test_weights_of_another_architecture_are_refused(tmp_path, change):
    save(qwen(**change), tmp_path / "other")
    with pytest.raises(CoevoError, match=r"other/model\.safetensors: its weights do not fit"):
        load_weights(qwen(), tmp_path / "other")


def test_adapters_of_another_rank_are_refused_and_absent_weights_named(base, tmp_path):
    config = PretrainedPolicyConfig(type="pretrained", path=str(base), lora=LoraConfig(r=4))
    save(build(config, (), key(0)), tmp_path / "other")
    with pytest.raises(CoevoError, match="do not fit"):
        load_weights(adapted(base), tmp_path / "other")
    with pytest.raises(CoevoError, match=r"model\.safetensors: no such weights"):
        load_weights(qwen(), tmp_path)


def test_pickled_adapters_are_refused(base, tmp_path):
    save(adapted(base), tmp_path / "lora")
    (tmp_path / "lora" / "adapter_model.safetensors").rename(tmp_path / "lora" / "adapter_model.bin")
    with pytest.raises(CoevoError, match=r"adapter_model\.safetensors: no such weights"):
        load(tmp_path / "lora")


def test_a_policy_without_chat_template_is_refused(base):
    (base / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((base / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (base / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(CoevoError, match="no chat template"):
        build(PretrainedPolicyConfig(type="pretrained", path=str(base)), (), key(1))


def test_pretrained_keeps_weights_and_tokenizer(base):
    policy = build(PretrainedPolicyConfig(type="pretrained", path=str(base)), ("ignored",), key(1))
    assert isinstance(policy, Policy)
    assert torch.equal(logits(policy), logits(llama()))
    assert "ignored" not in policy.tokenizer.get_vocab()


@pytest.mark.parametrize("targets", [("q_proj", "lm_head"), ("embed_tokens",), r".*(q_proj|lm_head)"])
def test_adapters_of_the_vocabulary_layers_are_refused(base, targets):
    lora = LoraConfig(r=2, target_modules=targets)
    with pytest.raises(CoevoError, match=r"target_modules = .* includes the embeddings or the output layer"):
        build(PretrainedPolicyConfig(type="pretrained", path=str(base), lora=lora), (), key(0))


def test_foreign_adapters_of_the_output_layer_are_refused(base, tmp_path):
    foreign = get_peft_model(load(base).model, PeftLora(r=2, target_modules=["lm_head"], task_type="CAUSAL_LM"))
    save(Policy(foreign, load(base).tokenizer), tmp_path / "foreign")
    with pytest.raises(CoevoError, match=r"adapter_config\.json: target_modules includes .* the output layer"):
        load(tmp_path / "foreign")


def test_adapters_are_never_merged_into_their_base(tmp_path):
    """A step of an adapter is smaller than the rounding of a base in half precision, and a merge would lose it."""
    save(Policy(llama().model.bfloat16(), llama().tokenizer), tmp_path / "base")
    config = PretrainedPolicyConfig(
        type="pretrained", path=str(tmp_path / "base"), lora=LoraConfig(r=2), dtype="bfloat16"
    )
    save(build(config, (), key(0)), tmp_path / "lora")
    bundle(tmp_path / "lora", tmp_path / "moved")
    kept, original = load(tmp_path / "moved").model.state_dict(), load(tmp_path / "base").model.state_dict()
    stem = "base_model.model."
    for name, weights in original.items():
        found = [kept[n] for n in (stem + name, stem + name.replace(".weight", ".base_layer.weight")) if n in kept]
        assert len(found) == 1
        assert torch.equal(found[0], weights)
    assert {w.dtype for n, w in load_file(tmp_path / "moved" / "adapter_model.safetensors").items()} == {torch.float32}


@pytest.mark.parametrize(
    ("path", "remedy"),
    [("Qwen/not-here", ": `hf download Qwen/not-here`, or name a folder"), ("/not/here", ": name a folder")],
)
def test_weights_that_are_not_here_are_one_line_with_the_command_that_downloads_them(path, remedy):
    with pytest.raises(
        CoevoError, match=f"policy.path = '{path}' cannot be read, it is not on this machine{remedy}"
    ) as caught:
        build(PretrainedPolicyConfig(type="pretrained", path=path), (), key(0))
    assert "\n" not in str(caught.value)
    with pytest.raises(CoevoError, match="cannot be read"):
        load(Path(path))
