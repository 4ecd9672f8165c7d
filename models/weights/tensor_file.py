"""The safetensors format, written tensor by tensor: its library needs all tensors, and a copy of them, at once.

    8 bytes   length of the header, little-endian
    header    JSON: {"__metadata__": {…}, name: {"dtype": …, "shape": […], "data_offsets": [first, last + 1]}, …},
              filled with spaces to a multiple of 8 bytes
    data      values of each tensor, row-major and little-endian, without gaps

Tensors are in the order of the library: by ``DTYPES``, then by name. So a file has the bytes that ``save_file`` writes.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import RawIOBase
from math import prod
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space

DTYPES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of types in the format, in the order of their tensors in a file."""
HEADER = 100_000_000
"""Maximum bytes of a header, as in the library."""
UNFINISHED = ".part"
"""Suffix of a file that is being written."""


@dataclass(frozen=True)
class Spec:
    """Type and shape of a tensor in a file."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size of the values."""
        return prod(self.shape) * self.dtype.itemsize


def in_file_order(specs: Mapping[str, Spec]) -> list[str]:
    """Names of tensors in the order of a file."""
    order = list(DTYPES)
    return sorted(specs, key=lambda name: (order.index(specs[name].dtype), name))


def write_tensors(
    path: Path, specs: Mapping[str, Spec], values: Iterable[Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file by temporary file and rename, holding one tensor at a time.

    Args:
        path: the file.
        specs: its tensors by name.
        values: on any device, in the order of ``in_file_order``; made one by one while the file is written.
        metadata: texts for its header.

    Raises:
        CoevoError: the disk has less room than the file needs.
        ValueError: a value differs in type or shape from its spec.
    """
    names, head = in_file_order(specs), _header(specs, metadata)
    require_space(path.parent, len(head) + sum(spec.bytes for spec in specs.values()), f"writing {path.name}")
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with unfinished.open("wb", buffering=0) as file:
            _write(file, head)
            for name, value in zip(names, values, strict=True):
                if (value.dtype, tuple(value.shape)) != (specs[name].dtype, specs[name].shape):
                    raise ValueError(f"{name}: a {value.dtype} of shape {tuple(value.shape)} is not {specs[name]}")
                _write(file, _bytes(value))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_layout(file: BinaryIO) -> dict[str, tuple[Spec, int]]:
    """Spec of each tensor of a file, and the position of its first byte.

    Raises:
        CoevoError: it is not a safetensors file.
    """
    try:
        (length,) = struct.unpack("<Q", file.read(8))
        fields = json.loads(file.read(min(length, HEADER)))
        fields.pop("__metadata__", None)
        kinds = {name: dtype for dtype, name in DTYPES.items()}
        return {
            name: (Spec(kinds[field["dtype"]], tuple(field["shape"])), 8 + length + field["data_offsets"][0])
            for name, field in fields.items()
        }
    except (struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CoevoError(f"{file.name}: not a safetensors file ({error}): name a directory with a policy") from None


def _header(specs: Mapping[str, Spec], metadata: Mapping[str, str] | None) -> bytes:
    fields: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    start = 0
    for name in in_file_order(specs):
        end = start + specs[name].bytes
        fields[name] = {
            "dtype": DTYPES[specs[name].dtype],
            "shape": specs[name].shape,
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _bytes(value: Tensor) -> memoryview:
    """Values of a tensor as bytes; nothing is copied from a contiguous one on the CPU."""
    flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return flat.numpy().data


def _write(file: RawIOBase, content: bytes | memoryview) -> None:
    """Write all of it: one call of the system writes at most 2 GiB, and less on a disk that fills."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]
