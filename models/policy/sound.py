"""Weights from a remote, a registry or a disk, checked before they are used.

Files that are whole may still hold nonsense: a policy of another architecture, tensors that are missing (Transformers
draws them at random, and says so in a log at most), or values that are not numbers. Such a policy plays every episode,
fails each, and looks like a bad one. Headers are compared first, then the loaded model answers one fixed prompt.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from coevo.configs.policy_config import LoraConfig, PolicyConfig, PretrainedPolicyConfig
from coevo.models.policy.foreign import folder_of, settings_of
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import PEFT_CONFIG, PEFT_WEIGHTS, WEIGHTS, load, outline, weights_at
from coevo.models.policy.stored import check_stored, saved_shapes
from coevo.utilities.errors import CoevoError

TOKENS = 16
"""Tokens of the prompt: ids spread over the vocabulary."""
FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
"""Types of weights in the safetensors format."""
SCRATCH = frozenset({"F32"})
"""Type of a scratch policy's weights; a pretrained one may be stored in another than it is used in."""
SIZES = {
    "hidden_size": "hidden_size",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "intermediate_size",
}
"""Sizes of a scratch policy, by their names in ``config.json``."""
UNSET = (
    "use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "modules_to_save", "layers_to_transform",
    "layer_replication", "lora_bias", "fan_in_fan_out", "trainable_token_indices", "target_parameters",
)  # fmt: skip
"""Settings of adapters that no run has, and that change what their weights do."""
FOREIGN = ("model_type", "hidden_size", "num_hidden_layers")
"""Settings that a policy keeps from the model that it began as."""


def load_sound(directory: Path, config: PolicyConfig) -> Policy:
    """Load a policy of a run, once it is certain that it is one.

    Raises:
        CoevoError: its architecture is not that of the configuration, its weights do not fit it or are not
            floating-point numbers, or its log-probabilities are not finite.
    """
    check_files(directory, config)
    policy = load(directory)
    check_log_probs(policy, directory)
    return policy


def check_files(directory: Path, config: PolicyConfig) -> None:
    """Check a policy by its settings and the headers of its weights; no value is read.

    Raises:
        CoevoError: its architecture is not that of the configuration, or its weights do not fit it.
    """
    adapted = (directory / PEFT_CONFIG).is_file()
    if adapted:
        _check_adapters(directory, config)
    else:
        _check_architecture(directory, config)
        check_stored(str(directory))
    file = directory / (PEFT_WEIGHTS if adapted else WEIGHTS)
    kinds = FLOATS if isinstance(config, PretrainedPolicyConfig) else SCRATCH
    for name, kind in _types(file).items() if file.is_file() else ():
        if kind not in kinds:
            raise _unsound(directory, f"{name[:80]} has numbers of type {kind} instead of {' or '.join(sorted(kinds))}")


def check_values(directory: Path) -> None:
    """Check that the weights in a directory are finite, tensor by tensor, for a server that will load them itself.

    Raises:
        CoevoError: one is not.
    """
    file = directory / (PEFT_WEIGHTS if (directory / PEFT_CONFIG).is_file() else WEIGHTS)
    with safe_open(weights_at(file), framework="pt") as saved:
        for name in saved.keys():  # noqa: SIM118
            _check_finite(name, saved.get_tensor(name), directory)


@torch.inference_mode()
def check_log_probs(policy: Policy, directory: Path) -> None:
    """Check that weights, and log-probabilities after a fixed prompt, are finite. Raises ``CoevoError`` if not."""
    model = policy.model
    for name, weight in model.named_parameters():
        _check_finite(name, weight, directory)
    words = int(model.config.vocab_size)
    device = next(model.parameters()).device
    prompt = torch.linspace(0, words - 1, TOKENS, dtype=torch.float64).long()[None].to(device)
    found = model(input_ids=prompt).logits.float().log_softmax(-1)
    if not bool(found.isfinite().all()):
        raise _unsound(directory, "its log-probabilities of a fixed prompt are not finite")


def _check_finite(name: str, weight: torch.Tensor, directory: Path) -> None:
    """Check the norm: it is infinite also for values whose squares overflow, which a layer's norm turns into zeros."""
    if not bool(torch.linalg.vector_norm(weight.float()).isfinite()):
        raise _unsound(directory, f"{name[:80]} is not finite")


def _check_architecture(directory: Path, config: PolicyConfig) -> None:
    found = settings_of(directory / "config.json")
    wanted = _architecture(config)
    wrong = [f"{name} is {str(found.get(name))[:40]!a} instead of {wanted[name]!r}" for name in wanted]
    wrong = [line for line, name in zip(wrong, wanted, strict=True) if found.get(name) != wanted[name]]
    if wrong:
        raise _unsound(directory, f"it is of another architecture than the run's: {'; '.join(wrong[:3])}")


def _architecture(config: PolicyConfig) -> dict[str, Any]:
    """Settings that a policy has to have; empty where its first model is not on this machine."""
    if not isinstance(config, PretrainedPolicyConfig):
        sizes = {name: getattr(config, own) for name, own in SIZES.items()}
        return {"model_type": "qwen3", "dtype": "float32", **sizes}
    folder = folder_of(config.path)
    known = {} if folder is None else settings_of(folder / "config.json")
    return {name: known[name] for name in FOREIGN if name in known}


def _check_adapters(directory: Path, config: PolicyConfig) -> None:
    """Check that a file has the adapters of the run, and its settings their scale: PEFT draws a missing one at random,
    and leaves the base model as it is under a scale of 0.
    """
    is_foreign = isinstance(config, PretrainedPolicyConfig) and Path(config.path) == directory  # no run's
    lora = None if is_foreign else _lora(directory, config)
    weights_at(directory / PEFT_WEIGHTS)
    described = {
        name.replace(".default.", "."): list(value.shape)
        for name, value in outline(directory, lora).model.named_parameters()
        if "lora_" in name
    }
    try:
        stored = saved_shapes(directory / PEFT_WEIGHTS)
    except SafetensorError:
        stored = {}
    wrong = [name for name, shape in described.items() if stored.get(name) != shape]
    if wrong or not described:
        named = wrong[0][:120] if wrong else "every adapter"
        raise _unsound(
            directory,
            f"{named} is missing, or has another shape than {'policy.lora' if lora else PEFT_CONFIG} describes",
        )


def _lora(directory: Path, config: PolicyConfig) -> LoraConfig:
    """Settings of a run's adapters, which those beside the weights have to agree with."""
    lora = config.lora if isinstance(config, PretrainedPolicyConfig) else None
    if lora is None:
        raise _unsound(directory, "it has adapters, and the run has none")
    found = {"bias": "none"} | settings_of(directory / PEFT_CONFIG)
    wanted = {"peft_type": "LORA", "r": lora.r, "lora_alpha": lora.alpha, "bias": "none"}
    wrong = [name for name in wanted if found.get(name) != wanted[name]] + [name for name in UNSET if found.get(name)]
    if wrong:
        said = str(found.get(wrong[0]))[:40]
        raise _unsound(directory, f"{PEFT_CONFIG} has other adapters than policy.lora: {wrong[0]} is {said!a}")
    return lora


def _types(file: Path) -> dict[str, str]:
    """Type of each tensor of a file by name."""
    try:
        with safe_open(file, framework="pt") as saved:
            return {name: saved.get_slice(name).get_dtype() for name in saved.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise _unsound(file.parent, f"{file.name} is damaged ({' '.join(str(error).split())[:100]})") from None


def _unsound(directory: Path, why: str) -> CoevoError:
    return CoevoError(f"policy in {directory}: {why}: do not use these weights; `coevo fsck` checks what is stored")
