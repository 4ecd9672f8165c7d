"""Weights of a foreign model, checked by the headers of their files before any value is read."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM

from coevo.models.policy.foreign import folder_of, settings_of
from coevo.utilities.errors import CoevoError

INDEX = "model.safetensors.index.json"
MAX_TENSORS_NAMED = 3
"""Maximum number of tensors that a message names."""


def check_stored(path: str) -> None:
    """Check that the safetensors files of a model are whole, and have the tensors that its ``config.json`` describes.

    A model that is not on this machine, or whose settings Transformers cannot read, is left to who loads it.

    Raises:
        CoevoError: a file is incomplete or missing, or a tensor is missing or has another shape.
    """
    folder = folder_of(path)
    files = [] if folder is None else _files(folder)
    model = _outline(path) if files else None
    if model is None:
        return
    state, tied = model.state_dict(), getattr(model, "all_tied_weights_keys", None) or ()
    described = {name: [*value.shape] for name, value in state.items() if name not in tied}
    stored = {name: shape for file in files for name, shape in _whole(file).items()}
    wrong = [
        f"{name} is {stored[name]} instead of {shape}"
        for name, shape in described.items()
        if stored.get(name, shape) != shape
    ]
    # Models of an older form name some tensors otherwise, which Transformers translates.
    missing = [name for name in described if name not in stored] if stored.keys() <= state.keys() else []
    if wrong or missing:
        faults = [*wrong, *(f"{name} is missing" for name in missing)]
        more = f" and {len(faults) - MAX_TENSORS_NAMED} more" if len(faults) > MAX_TENSORS_NAMED else ""
        raise CoevoError(
            f"model {path!r}: the weights do not fit config.json ({'; '.join(faults[:MAX_TENSORS_NAMED])}{more}): "
            "take both from the same model"
        )


def saved_shapes(path: Path) -> dict[str, list[int]]:
    """Shape of each tensor of a file by name.

    Raises:
        SafetensorError: it is no safetensors file, or not a whole one.
    """
    with safe_open(path, framework="pt") as saved:
        return {name: saved.get_slice(name).get_shape() for name in saved.keys()}  # noqa: SIM118


def _files(folder: Path) -> list[Path]:
    """Files of the weights, as Transformers looks for them: the one, else those that the index names; maybe none."""
    whole, index = folder / "model.safetensors", folder / INDEX
    if whole.is_file() or not index.is_file():
        return [whole] if whole.is_file() else []
    places = settings_of(index).get("weight_map")
    if not isinstance(places, dict):
        raise CoevoError(f"{index}: has no weight_map: download the model again")
    names = sorted(set(map(str, places.values())))
    absent = next((name for name in names if not (folder / name).is_file()), None)
    if absent is not None:
        raise CoevoError(
            f"{folder}: {ascii(absent)[1:-1][:100]} is missing, which {INDEX} names: download the model again"
        )
    return [folder / name for name in names]


def _whole(file: Path) -> dict[str, list[int]]:
    try:
        return saved_shapes(file)
    except SafetensorError as error:
        reason = " ".join(str(error).split())
        raise CoevoError(f"{file}: is damaged or incomplete ({reason}): download or copy it again") from None


def _outline(path: str) -> Any:
    """The model that ``config.json`` describes, without values; None if it is stored in another form (experts)."""
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except Exception:  # noqa: BLE001  (whatever a malformed file leads to: the model's loading names it)
        return None
    return None if getattr(model, "_weight_conversions", None) else model
