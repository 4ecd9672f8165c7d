"""Models from elsewhere: files that would run code are refused before a library reads them.

Transformers asks "run the custom code? [y/N]" for a ``config.json`` with an ``auto_map``, PEFT imports modules that
adapters name, attention may be the name of a kernel to download, and pickled weights run their own code. None of that
is needed to read a model.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any, get_args

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.models.policy.bounded_trial import try_tokenizer
from coevo.utilities.errors import CoevoError

PRECISIONS = get_args(PretrainedPolicyConfig.model_fields["dtype"].annotation)
"""Types that policies compute in."""
SETTINGS = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
"""Files in which ``auto_map`` names classes of the model's own."""
KERNEL = "_implementation"
"""Part of the name of settings, such as ``_attn_implementation``, that may name a kernel of the hub: ``org/kernel``."""
IMPORTING = ("auto_mapping", "megatron_config")
"""Settings of adapters that name modules to import."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
WEIGHTS = "*.safetensors"
MAX_SETTINGS_BYTES = 2**25
"""Maximum bytes of settings, or of the index of weights; one with 140,000 tensors has 2^24."""
HUB = re.compile(r"[\w-][\w.-]*/[\w.-]+")
"""Names of models on the hub: ``organization/model``."""


def check_settings(path: str) -> None:
    """Check that a model's settings need no code of its own.

    Args:
        path: a directory, or the name of a model in the local cache of the hub; a model that is not here passes.

    Raises:
        CoevoError: they do, or are not JSON objects.
    """
    folder = folder_of(path)
    for file in [folder / name for name in SETTINGS] if folder else ():
        settings = settings_of(file)
        named = "auto_map" if "auto_map" in settings else _kernel(settings)
        if named is not None:
            raise CoevoError(
                f"model {path!r} needs code of its own ({file.name}: {named}), which coevo does not run: name a model "
                f"that transformers knows, or remove {named} where it does"
            )


def check_tokenizer(path: str) -> None:
    """Check that a model's tokenizer, if it is here, encodes text in bounded time and memory.

    Raises:
        CoevoError: it does not, or is too large.
    """
    file = (folder_of(path) or Path(path)) / "tokenizer.json"
    fault = try_tokenizer(file)
    if fault is not None:
        raise CoevoError(f"{file}: cannot be used, it {fault}: take it from the model again, or name another one")


def check_weights(path: str) -> None:
    """Check that a model has weights other than pickles. Raises ``CoevoError`` if it has not."""
    folder = folder_of(path)
    pickled = _pickled([folder, *folder.glob("[0-9]_*")]) if folder else []
    if pickled:
        raise CoevoError(
            f"model {path!r} cannot be read: {pickled[0]} is a pickle, which can run code: convert it to safetensors"
        )


def malformed(files: str, error: Exception) -> CoevoError:
    """Error for files that a library cannot read, from any exception."""
    reason = shorten(f"{type(error).__name__}: {error}", 240, placeholder=" ...")
    return CoevoError(f"{files}: cannot be read ({reason}): correct it, or name another directory")


def check_alone(path: str) -> None:
    """Check that a base model's directory has no adapters: Transformers would load them with it, unchecked.

    Raises:
        CoevoError: it has some.
    """
    folder = folder_of(path) or Path(path)
    if (folder / "adapter_config.json").is_file():
        raise CoevoError(f"model {path!r} holds adapters (adapter_config.json): name a model without, or merge them")


def check_adapters(file: Path) -> None:
    """Check that an ``adapter_config.json`` describes LoRA adapters and names nothing to import.

    Raises:
        CoevoError: it does not.
    """
    settings = settings_of(file)
    named = [name for name in IMPORTING if settings.get(name)]
    if settings.get("peft_type") != "LORA" or named:
        wrong = f"{named[0]} names code to import" if named else f"peft_type={settings.get('peft_type')!r} is not LORA"
        raise CoevoError(f"{file}: {wrong}: name adapters that coevo or PEFT's LoRA has written")


def named_base(file: Path) -> str:
    """Base model that an ``adapter_config.json`` names: a path, or a name on the hub.

    Raises:
        CoevoError: the path is not on this machine.
    """
    base = str(settings_of(file).get("base_model_name_or_path"))
    if Path(base).is_absolute() and not Path(base).is_dir():
        raise CoevoError(
            f"the policy's adapters belong to the base model {base}, which is not on this machine: copy it there, or "
            f"link it, `ln -s FOLDER {base}`"
        )
    return base


def base_precision(file: Path) -> str:
    """Type that the base model of adapters computes in; ``auto``, the stored one, where no file names it.

    Raises:
        CoevoError: the file names none that policies have.
    """
    if not file.is_file():
        return "auto"
    with file.open(encoding="utf-8", errors="replace") as text:
        name = text.read(20)
    if name not in PRECISIONS:
        raise CoevoError(f"{file} has {name!r}: it should name one of {', '.join(PRECISIONS)}")
    return name


def _kernel(settings: dict[str, Any]) -> str | None:
    """Name of a setting, at any depth, whose value names a kernel of the hub."""
    left: list[tuple[str, Any]] = list(settings.items())
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += [(name if KERNEL in name else inner, part) for inner, part in value.items()]
        elif isinstance(value, list):
            left += [(name, part) for part in value]
        elif KERNEL in name and "/" in str(value):
            return name
    return None


def _pickled(folders: Iterable[Path]) -> list[str]:
    """Pickles in folders without weights as safetensors."""
    return [
        path.name
        for folder in folders
        if folder.is_dir() and not any(folder.glob(WEIGHTS))
        for pattern in PICKLES
        for path in sorted(folder.glob(pattern))
    ]


def folder_of(path: str) -> Path | None:
    """Directory of a model, also of one in the local cache of the hub; None if it is not on this machine."""
    if Path(path).is_dir():
        return Path(path)
    from transformers.utils import cached_file  # the light install reads banks without it

    try:
        found = cached_file(path, "config.json", local_files_only=True)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found).parent


def absent(path: str, setting: str = "policy.path") -> CoevoError:
    """Error of a model that is not on this machine, with the command that downloads it if the path may name one."""
    if Path(path).exists():
        said = "has no config.json" if Path(path).is_dir() else "is a file"
        return CoevoError(f"{setting} = {path!r} {said}: name a folder with a causal LM")
    download = f"`hf download {path}`, or " if HUB.fullmatch(path) else ""
    return CoevoError(
        f"{setting} = {path!r} cannot be read, it is not on this machine: {download}name a folder with a causal LM"
    )


def settings_of(file: Path) -> dict[str, Any]:
    """Read a model's settings or index; empty if there is none. Raises ``CoevoError`` if large or no JSON object."""
    if not file.is_file():
        return {}
    if file.stat().st_size > MAX_SETTINGS_BYTES:
        raise CoevoError(f"{file}: has {file.stat().st_size} bytes, of which a model needs few: take it from it again")
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CoevoError(f"{file}: not readable as JSON: {' '.join(str(error).split())[:160]}") from None
    if not isinstance(settings, dict):
        raise CoevoError(f"{file}: not a JSON object: name a model in Hugging Face format")
    return settings
