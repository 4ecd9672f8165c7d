"""Digests of the files that a server loads, compared with those of the tensors that it has loaded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from coevo.models.engines.vllm.server_check import WeightsError
from coevo.models.weights.tensor_digest import chunk_length, digest
from coevo.models.weights.tensor_file import Spec, read_layout


@dataclass(frozen=True)
class ExpectedDigests:
    """Expected digests of a server's weights.

    Attributes:
        shapes: of the tensors in its files, by name.
        values: digest of each, in the server's precision.
    """

    shapes: Mapping[str, Sequence[int]]
    values: Mapping[str, str]

    @classmethod
    def of(cls, directory: Path, dtype: torch.dtype) -> Self:
        """Read the weights in a directory, one chunk in memory at a time.

        Args:
            directory: with safetensors files.
            dtype: precision of the server.
        """
        shapes: dict[str, Sequence[int]] = {}
        values: dict[str, str] = {}
        for path in sorted(directory.glob("*.safetensors")):
            with path.open("rb") as file:
                for name, (spec, start) in read_layout(file).items():
                    shapes[name] = spec.shape
                    values[name] = digest(_chunks(file, spec, start, dtype))
        return cls(shapes, values)

    def check(self, found: Sequence[Mapping[str, str]], url: str) -> bool:
        """Compare with the digests that each worker of a server reports; True if they have one of every tensor.

        Raises:
            WeightsError: one differs; names the tensor.
        """
        for name, value in ((name, value) for worker in found for name, value in worker.items()):
            if value != self.values.get(name):
                raise WeightsError(
                    f"the vLLM server at {url} does not have the policy's weights: its {name} is not that of the files "
                    f"(digest {value or 'none'}, expected {self.values.get(name, 'none')}); see its log"
                )
        there = {name for worker in found for name in worker}
        return bool(there) and there == self.values.keys()


def _chunks(file: BufferedReader, spec: Spec, start: int, dtype: torch.dtype) -> Iterator[Tensor]:
    into = dtype if spec.dtype.is_floating_point else spec.dtype
    step = chunk_length(into) * spec.dtype.itemsize
    file.seek(start)
    for first in range(0, spec.bytes, step):
        part = bytearray(file.read(min(step, spec.bytes - first)))
        yield torch.frombuffer(part, dtype=spec.dtype).to(into)
