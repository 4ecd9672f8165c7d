"""Models from elsewhere: files that would run code are refused before a library reads them.

Transformers asks "run the custom code? [y/N]" where a ``config.json`` has an ``auto_map``, PEFT imports modules that
adapters name, and weights as pickles run what they hold. None of that is needed to read a model.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from configs.errors import CoevoError

SETTINGS = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
"""Files in which ``auto_map`` names classes of the model's own."""
IMPORTING = ("auto_mapping", "megatron_config")
"""Settings of adapters that name modules to import."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
WEIGHTS = "*.safetensors"


def check_settings(path: str) -> None:
    """Make sure that a model's settings ask for no code of its own.

    Args:
        path: a directory, or the name of a model in the local cache of the hub; one that is not here passes.

    Raises:
        CoevoError: they do, or are no JSON objects.
    """
    folder = _folder(path)
    for file in [folder / name for name in SETTINGS] if folder else ():
        if "auto_map" in _settings(file):
            raise CoevoError(
                f"model {path!r} needs code of its own ({file.name}: auto_map), which coevo does not run: name a model "
                "that transformers knows, or remove auto_map where it does"
            )


def check_weights(path: str) -> None:
    """Make sure that a model's weights are not pickles alone. Raises ``CoevoError`` where they are."""
    folder = _folder(path)
    pickled = _pickled([folder, *folder.glob("[0-9]_*")]) if folder else []
    if pickled:
        raise CoevoError(
            f"model {path!r} cannot be read: {pickled[0]} is a pickle, which can run code: convert it to safetensors"
        )


def check_alone(path: str) -> None:
    """Make sure that no adapters lie within a base model: Transformers would load them with it, unchecked.

    Raises:
        CoevoError: some do.
    """
    folder = _folder(path) or Path(path)
    if (folder / "adapter_config.json").is_file():
        raise CoevoError(f"model {path!r} holds adapters (adapter_config.json): name a model without, or merge them")


def check_adapters(file: Path) -> None:
    """Make sure that an ``adapter_config.json`` describes LoRA adapters and names nothing to import.

    Raises:
        CoevoError: it does not.
    """
    settings = _settings(file)
    named = [name for name in IMPORTING if settings.get(name)]
    if settings.get("peft_type") != "LORA" or named:
        wrong = f"{named[0]} names code to import" if named else f"peft_type={settings.get('peft_type')!r} is not LORA"
        raise CoevoError(f"{file}: {wrong}: name adapters that coevo or PEFT's LoRA has written")


def _pickled(folders: Iterable[Path]) -> list[str]:
    """Pickles in folders that have no weights as safetensors beside them."""
    return [
        path.name
        for folder in folders
        if folder.is_dir() and not any(folder.glob(WEIGHTS))
        for pattern in PICKLES
        for path in sorted(folder.glob(pattern))
    ]


def _folder(path: str) -> Path | None:
    if Path(path).is_dir():
        return Path(path)
    try:
        found = cached_file(path, "config.json", local_files_only=True)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found).parent


def _settings(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CoevoError(f"{file}: not readable as JSON: {' '.join(str(error).split())[:160]}") from None
    if not isinstance(settings, dict):
        raise CoevoError(f"{file}: holds no JSON object: name a model in Hugging Face format")
    return settings
