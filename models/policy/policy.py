"""The policy: a causal language model with its tokenizer; build, save and load it."""

import json
import os
import shutil
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

# DeepSpeed, which PEFT imports, would look for an accelerator itself and warn if it finds none.
os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")

from peft import LoraConfig as PeftLoraConfig
from peft import PeftConfig, PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError
from safetensors.torch import load_model
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils import logging as transformers_logging

from coevo.configs.policy_config import (
    EndpointPolicyConfig,
    LoraConfig,
    PolicyConfig,
    PretrainedPolicyConfig,
    ScratchPolicyConfig,
)
from coevo.models.policy.foreign import (
    absent,
    base_precision,
    check_adapters,
    check_alone,
    check_settings,
    check_tokenizer,
    check_weights,
    folder_of,
    named_base,
)
from coevo.models.policy.language_model import Policy
from coevo.models.policy.stored import check_stored, saved_shapes
from coevo.models.policy.tokenizers import check_promptable, word_tokenizer
from coevo.models.weights.tensor_file import Spec, in_file_order, write_tensors
from coevo.records.draws import Key, seed_of
from coevo.utilities.errors import CoevoError

transformers_logging.disable_progress_bar()
# PEFT reads an attribute that Transformers has renamed.
warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)

WEIGHTS, PEFT_WEIGHTS, PEFT_CONFIG = "model.safetensors", "adapter_model.safetensors", "adapter_config.json"
Full = Callable[[Tensor], Tensor]
"""Whole value of a parameter that may be partitioned among processes."""
GENERATION = "generation_config.json"
BASE = "base"
"""Folder of the base model of the adapters in the same directory."""
PRECISION = "base_dtype"
"""File with the type of that model's values, for example ``float32``: it may be stored in another one."""


def scratch(config: ScratchPolicyConfig, tokenizer: Any, key: Key) -> Policy:
    """Build a model with random weights for a tokenizer; ``key`` decides them."""
    with _seeded(key):
        return _scratch(config, tokenizer)


def build(config: PolicyConfig, vocabulary: Sequence[str], key: Key) -> Policy:
    """Build the policy that a configuration describes; ``key`` decides all new weights.

    Raises:
        CoevoError: a pretrained policy is not at its path, or cannot be prompted; or the policy is behind an endpoint.
    """
    if isinstance(config, EndpointPolicyConfig):
        raise CoevoError("policy.type=endpoint has no weights to build: set policy.type to pretrained or scratch")
    with _seeded(key):
        if isinstance(config, PretrainedPolicyConfig):
            return _pretrained(config)
        return _scratch(config, word_tokenizer(vocabulary))


@contextmanager
def _seeded(key: Key) -> Iterator[None]:
    """Draw torch's random numbers from a key, and leave its generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(key) % 2**63)
        yield


def save(policy: Policy, directory: Path, full: Full = Tensor.detach, writes: bool = True) -> None:
    """Write model and tokenizer in Hugging Face format, weights as safetensors (only the adapters' if it has some).

    Weights are written one by one, unless Transformers stores them in another form than the model's (experts).

    Args:
        policy: policy to write.
        directory: target directory.
        full: whole value of a parameter of which the model may have a part; all processes call it in the same order.
        writes: False in processes that only take part in ``full``.
    """
    model = policy.model
    state = _state(model)
    # Transformers says nowhere public that it stores a model in another form.
    if isinstance(model, PeftModel) or getattr(model, "_weight_conversions", None):
        whole = {name: full(value).cpu() for name, value in state.items()}
        if writes:
            model.save_pretrained(directory, state_dict=whole)
    else:
        specs = {
            name: Spec(value.dtype, tuple(getattr(value, "ds_shape", value.shape))) for name, value in state.items()
        }
        values = (full(state[name]) for name in in_file_order(specs))
        if writes:
            model.save_pretrained(directory, state_dict={})  # its settings
            write_tensors(directory / WEIGHTS, specs, values, {"format": "pt"})
        else:
            deque(values, maxlen=0)
    if writes:
        policy.tokenizer.save_pretrained(directory)
        if isinstance(model, PeftModel):
            _order_sets(model, directory / PEFT_CONFIG)
            dtype = str(model.get_base_model().dtype).removeprefix("torch.")
            (directory / PRECISION).write_text(dtype, encoding="utf-8")


def _order_sets(model: PeftModel, path: Path) -> None:
    """Sort the sets among the stored settings of adapters: PEFT's order differs from process to process."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    sets = {name for name, value in model.active_peft_config.to_dict().items() if isinstance(value, set)}
    ordered = {name: sorted(value) if name in sets else value for name, value in settings.items()}
    path.write_text(json.dumps(ordered, indent=2, sort_keys=True), encoding="utf-8")


def _state(model: Any) -> dict[str, Tensor]:
    """Tensors to save by name: the adapters if it has some, else all, of tied ones the first."""
    if isinstance(model, PeftModel):
        return {name: value for name, value in model.named_parameters() if value.requires_grad}
    state = model.state_dict(keep_vars=True)
    first: dict[int, str] = {}
    for name, value in state.items():
        first.setdefault(id(value), name)
    return {name: state[name] for name in first.values()}


def load(directory: Path) -> Policy:
    """Load the policy in a directory, ready to generate; adapters are put on the base model that they name.

    Raises:
        CoevoError: the directory has no policy, it needs code of its own, its weights are not safetensors, or its
            adapters change the embeddings or the output layer, or name an unknown type.
    """
    tokenizer = _read(AutoTokenizer, str(directory))
    if not (directory / PEFT_CONFIG).is_file():
        return Policy(_model(str(directory)), tokenizer)
    base = _model(base_of(directory), base_precision(directory / PRECISION))
    weights_at(directory / PEFT_WEIGHTS)
    adapted = PeftModel.from_pretrained(base, str(directory), is_trainable=True).eval()
    _check_targets(adapted, f"{directory / PEFT_CONFIG}: target_modules")
    return Policy(adapted, tokenizer)


def outline(directory: Path, lora: LoraConfig | None = None) -> Policy:
    """Read the policy in a directory without its weights: the model is on the ``meta`` device and takes no memory.

    Args:
        directory: directory of the policy.
        lora: adapters that it should have; by default those that it describes.

    Raises:
        CoevoError: as ``load``, or the directory has no weights.
    """
    adapted = (directory / PEFT_CONFIG).is_file()
    base = base_of(directory) if adapted else str(directory)
    check_weights(base)
    check_alone(base)
    weights_at(directory / (PEFT_WEIGHTS if adapted else WEIGHTS))
    config = _read(AutoConfig, base)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False).eval()
        if (Path(base) / GENERATION).is_file():
            model.generation_config = _read(GenerationConfig, base)
        if adapted and lora is not None:
            model = _adapted(model, lora)
        elif adapted:
            model = PeftModel(model, PeftConfig.from_pretrained(str(directory), inference_mode=False))
            _check_targets(model, f"{directory / PEFT_CONFIG}: target_modules")
    return Policy(model, _read(AutoTokenizer, str(directory)))


def check_fits(policy: Policy, directory: Path) -> None:
    """Check that the weights in a directory have the names and shapes of a policy's, which may be an ``outline``.

    Raises:
        CoevoError: the directory has no weights, or they are of another architecture.
    """
    adapted = isinstance(policy.model, PeftModel)
    path = weights_at(directory / (PEFT_WEIGHTS if adapted else WEIGHTS))
    shapes = {name.replace(".default.", "."): list(value.shape) for name, value in _state(policy.model).items()}
    try:
        fits = shapes.items() <= saved_shapes(path).items()
    except SafetensorError:
        fits = False
    if not fits:
        raise CoevoError(f"{path}: its weights do not fit the policy; load a policy of the same architecture")


def bundle(directory: Path, into: Path) -> None:
    """Copy a policy into a new directory, adapters with their base model, so that it can be moved.

    Raises:
        CoevoError: the base model is not where the adapters name it.
    """
    shutil.copytree(directory, into)
    if (into / PEFT_CONFIG).is_file() and not (into / BASE).is_dir():
        _model(base_of(directory)).save_pretrained(into / BASE)


def load_weights(policy: Policy, directory: Path) -> None:
    """Replace the weights of a policy by those of the same architecture in a directory.

    Raises:
        CoevoError: the directory has no weights, or they are of another architecture.
    """
    adapted = isinstance(policy.model, PeftModel)
    path = weights_at(directory / (PEFT_WEIGHTS if adapted else WEIGHTS))
    try:
        fits = _set_adapters(policy.model, directory) if adapted else load_model(policy.model, path) is not None
    except (RuntimeError, SafetensorError):
        fits = False
    if not fits:
        raise CoevoError(f"{path}: its weights do not fit the policy; load a policy of the same architecture")


def weights_at(path: Path) -> Path:
    """A policy's file of weights. Raises ``CoevoError`` if it is not there."""
    if not path.is_file():
        raise CoevoError(f"{path}: no such weights; name a directory with a policy")
    return path


def base_of(directory: Path) -> str:
    """Path of the base model of the adapters in a directory: next to them, else its original place.

    Raises:
        CoevoError: the adapters name code to import, or a path that is not on this machine.
    """
    check_adapters(directory / PEFT_CONFIG)
    beside = directory / BASE
    return str(beside) if beside.is_dir() else named_base(directory / PEFT_CONFIG)


def _set_adapters(model: Any, directory: Path) -> bool:
    outcome = set_peft_model_state_dict(model, load_peft_weights(str(directory)))
    return not outcome.unexpected_keys and not any("lora_" in name for name in outcome.missing_keys)


def _scratch(config: ScratchPolicyConfig, tokenizer: Any) -> Policy:
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    return Policy(Qwen3ForCausalLM(scratch_config(config, len(tokenizer), **special)).eval(), tokenizer)


def scratch_config(config: ScratchPolicyConfig, words: int, **special: int | None) -> Qwen3Config:
    """Transformers configuration of a model with random weights; ``special`` are ids of its tokens."""
    return Qwen3Config(
        vocab_size=words,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        max_position_embeddings=config.max_positions,
        initializer_range=config.init_std,
        tie_word_embeddings=True,
        **special,
    )


def _pretrained(config: PretrainedPolicyConfig) -> Policy:
    if folder_of(config.path) is None:
        raise absent(config.path)
    tokenizer = _read(AutoTokenizer, config.path)
    check_promptable(tokenizer, config.path)
    check_stored(config.path)
    model = _model(config.path, getattr(torch, config.dtype))
    return Policy(model if config.lora is None else _adapted(model, config.lora), tokenizer)


def _model(path: str, dtype: Any = "auto") -> Any:
    options = {"dtype": dtype, "attn_implementation": "sdpa", "use_safetensors": True}
    check_weights(path)
    check_alone(path)
    return _read(AutoModelForCausalLM, path, **options).eval()


def _read(kind: Any, path: str, **options: Any) -> Any:
    """Load a ``kind`` of object from a path on this machine."""
    check_settings(path)
    if kind is AutoTokenizer:
        check_tokenizer(path)
    try:
        return kind.from_pretrained(path, local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:  # noqa: BLE001  (Transformers raises whatever a malformed file leads to)
        reason = " ".join(str(error).split())[:160]
        raise CoevoError(
            f"policy {path!r}: cannot be read ({reason}); name a directory with a causal LM in safetensors"
        ) from None


def _adapted(model: Any, lora: LoraConfig) -> Any:
    targets = lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules)
    adapters = PeftLoraConfig(r=lora.r, lora_alpha=lora.alpha, target_modules=targets, task_type="CAUSAL_LM")
    adapted = get_peft_model(model, adapters).eval()
    _check_targets(adapted, f"policy.lora.target_modules = {lora.target_modules!r}")
    return adapted


def _check_targets(adapted: Any, named: str) -> None:
    """Check that adapters leave the vocabulary layers alone: tied ones would differ, and engines do not serve them.

    Raises:
        CoevoError: they do not.
    """
    layers = (adapted.get_input_embeddings(), adapted.get_output_embeddings())
    if any(isinstance(layer, BaseTunerLayer) for layer in layers):
        raise CoevoError(f"{named} includes the embeddings or the output layer: leave them out, or set all-linear")
