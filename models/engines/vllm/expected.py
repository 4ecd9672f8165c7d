"""Weights of a server, and what proves that it has them: digests of their tensors, and the policy's probe.

The probe are log-probs of a fixed prompt. The process that generates with vLLM never holds a policy:
``python -m coevo.models.engines.vllm.expected`` loads it, prints its probe as JSON and ends.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from threading import Lock
from typing import Self

import torch
from torch import Tensor

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.server_check import ServerProbe, WeightsError
from coevo.models.policy.apart import run_apart
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import load
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


class Weights:
    """Weights of a server; what proves them is computed once, when a server first needs it.

    Args:
        policy: directory of the policy; read by the first use of ``probe``.
        directory: the same, laid out by ``coevo.models.engines.vllm.vllm_engine``.
        adapter: name of the adapters in it; empty for full weights.
        config: precision of the servers, and threads of the probe.
        temperature: of the rollouts.
        former: the weights before, if there were any.
    """

    def __init__(
        self,
        policy: Path,
        directory: Path,
        adapter: str,
        config: VllmEngineConfig,
        temperature: float,
        former: Self | None = None,
    ) -> None:
        self.directory = directory
        self.adapter = adapter
        self._policy = policy
        self._config = config
        self._temperature = temperature
        self._former = former.known if former else None
        self._lock = Lock()

    @property
    def probe(self) -> ServerProbe:
        """The policy's probe; it knows that of the weights before if a server needed it."""
        with self._lock:
            return self._probe

    @property
    def digests(self) -> ExpectedDigests:
        """Digests of the files in ``directory``."""
        with self._lock:
            return self._digests

    @property
    def files_digest(self) -> str:
        """Digest of the files in ``directory``: equal for equal weights, whichever process loads them."""
        with self._lock:
            return self._files_digest

    @property
    def known(self) -> ServerProbe | None:
        """The probe, if it was computed."""
        return self.__dict__.get("_probe")

    @cached_property
    def _probe(self) -> ServerProbe:
        former = self._former.logprobs if self._former else ()
        return probe_apart(self._policy, self._temperature, self._config.threads, former)

    @cached_property
    def _digests(self) -> ExpectedDigests:
        return ExpectedDigests.of(self.directory, getattr(torch, self._config.dtype))

    @cached_property
    def _files_digest(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        for path in sorted(self.directory.glob("*.safetensors")):
            with path.open("rb") as file:
                whole.update(hashlib.file_digest(file, "blake2b").digest())
        return whole.hexdigest()


def _chunks(file: BufferedReader, spec: Spec, start: int, dtype: torch.dtype) -> Iterator[Tensor]:
    into = dtype if spec.dtype.is_floating_point else spec.dtype
    step = chunk_length(into) * spec.dtype.itemsize
    file.seek(start)
    for first in range(0, spec.bytes, step):
        part = bytearray(file.read(min(step, spec.bytes - first)))
        yield torch.frombuffer(part, dtype=spec.dtype).to(into)


LENGTH = 48
"""Maximum number of tokens of the prompt; they are spread over the vocabulary."""


@torch.inference_mode()
def probe_of(policy: Policy, temperature: float, former: Sequence[float] = ()) -> ServerProbe:
    """Create a fixed prompt without meaning, and the policy's log-probs of it in a forward of our own.

    Args:
        policy: the expected policy.
        temperature: of the rollouts.
        former: log-probs of the same prompt under the weights before.
    """
    size, longest = len(policy.tokenizer), policy.model.config.max_position_embeddings - 1
    prompt = [(3 + 7919 * index) % size for index in range(min(LENGTH, longest))]
    ids = torch.tensor([prompt])
    logits = policy.model(input_ids=ids).logits[0].double()
    said = logits[:-1].log_softmax(-1).gather(-1, ids[0, 1:, None]).squeeze(-1)
    following = (logits[-1] / temperature).log_softmax(-1)
    return ServerProbe(prompt, said.tolist(), temperature, following.tolist(), former)


def probe_apart(directory: Path, temperature: float, threads: int, former: Sequence[float] = ()) -> ServerProbe:
    """Compute the probe of the policy in a directory in another process.

    Args:
        directory: the policy.
        temperature: of the rollouts.
        threads: CPU threads per tensor operation there.
        former: log-probs of the same prompt under the weights before.

    Raises:
        CoevoError: the process failed; its last line says why.
    """
    said = run_apart(__name__, str(directory), repr(temperature), str(threads))
    return replace(ServerProbe(**json.loads(said)), former=former)


def main(directory: str, temperature: str, threads: str) -> None:
    """Print the probe of the policy in a directory."""
    torch.set_num_threads(int(threads))
    print(json.dumps(asdict(probe_of(load(Path(directory)), float(temperature)))))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
