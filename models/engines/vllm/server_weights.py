"""Weights in a form that a vLLM server can load: a directory that stays until newer ones are in use.

If embeddings are tied, vLLM's reload silently keeps the old output layer. It therefore gets an untied model:
``lm_head.weight`` in its own file, and a configuration without the tie.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file

from coevo.models.policy.foreign import weights_at
from coevo.models.policy.policy import PEFT_CONFIG, PEFT_WEIGHTS, WEIGHTS
from coevo.utilities.errors import CoevoError

CONFIG, HEAD = "config.json", "lm_head.weight"
HEAD_FILE = "model-lm_head.safetensors"
EMBEDDINGS = "embed_tokens.weight"


def serve_model(policy: Path, into: Path) -> Path:
    """Lay out a policy's full weights; return the directory.

    Raises:
        CoevoError: the policy has no weights, or no embedding to untie.
    """
    _link(policy, into, [path.name for path in policy.iterdir() if path.is_file() and path.name != CONFIG])
    config = json.loads((policy / CONFIG).read_text(encoding="utf-8"))
    if config.get("tie_word_embeddings"):
        _untie(weights_at(policy / WEIGHTS), into)
        config["tie_word_embeddings"] = False
    (into / CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")
    return into


def serve_adapters(policy: Path, into: Path) -> Path:
    """Lay out a policy's adapters; return the directory."""
    weights_at(policy / PEFT_WEIGHTS)
    _link(policy, into, (PEFT_CONFIG, PEFT_WEIGHTS))
    return into


def _untie(weights: Path, into: Path) -> None:
    with safe_open(weights, framework="pt") as tensors:
        names = [name for name in tensors.keys() if name.endswith(EMBEDDINGS)]  # noqa: SIM118
        if len(names) != 1:
            raise CoevoError(f"{weights}: no {EMBEDDINGS} to tie the output layer to; untie the model's embeddings")
        save_file({HEAD: tensors.get_tensor(names[0])}, into / HEAD_FILE, metadata={"format": "pt"})


def _link(source: Path, into: Path, names: Iterable[str]) -> None:
    """Hard-link files into another directory, so that they survive their source; copy them if links fail."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name in names:
        path = (source / name).resolve()
        try:
            os.link(path, into / name)
        except OSError:  # another disk or mount, or a file of another user
            shutil.copyfile(path, into / name)
