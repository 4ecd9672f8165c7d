"""Digest of a tensor: a sum of its words of 8 bytes, weighted by their positions, modulo 2^64.

It needs a fixed amount of memory and one pass on any device. It finds errors, not forgeries: whoever can write into a
server can also answer for it. The module runs in vLLM's environment as well, and imports nothing of coevo.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import pad

WORDS = 2**17
"""Words per chunk."""
ODD = 0x9E3779B97F4A7C15
"""Odd factor that spreads positions over 64 bits (the golden ratio)."""


def digest(parts: Iterable[Tensor]) -> str:
    """Digest (hex) of a tensor from flat chunks of ``chunk_length`` values in order; the last one may be shorter."""
    total = 0
    for number, part in enumerate(parts):
        words = _words(part)
        places = torch.arange(1, len(words) + 1, device=words.device) * (ODD - 2**64) | 1
        chunk = ODD * (number + 1) % 2**64
        total += int((words * (places ^ places >> 29)).sum()) * (chunk ^ chunk >> 31 | 1)
    return f"{total % 2**64:016x}"


def digest_of(values: Tensor) -> str:
    """Digest (hex) of a tensor in memory."""
    return digest(values.detach().reshape(-1).split(chunk_length(values.dtype)))  # type: ignore[no-untyped-call]


def chunk_length(dtype: torch.dtype) -> int:
    """Values of a type per chunk."""
    return WORDS * 8 // dtype.itemsize


def _words(part: Tensor) -> Tensor:
    """Values as words; the last one is filled with zeros."""
    flat = part.contiguous().view(torch.uint8)
    words = pad(flat, (0, -len(flat) % 8)).clone().view(torch.int64)
    return words ^ words >> 31  # the low bits of round numbers are zero
