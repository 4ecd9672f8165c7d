"""Weights of a server, and what proves that it has them: digests of their tensors, and the policy's probe."""

import hashlib
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Self

import torch

from coevo.configs.rollout.engine_config import VllmEngineConfig
from coevo.models.engines.vllm.digests import ExpectedDigests
from coevo.models.engines.vllm.probe import probe_apart
from coevo.models.engines.vllm.server_check import ServerProbe


class Weights:
    """Weights of a server; what proves them is computed once, when a server first needs it.

    Args:
        policy: directory of the policy; read by the first use of ``probe``.
        directory: the same, laid out by ``coevo.models.engines.vllm.server_weights``.
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
