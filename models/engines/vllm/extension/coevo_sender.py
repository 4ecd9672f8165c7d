"""Sender of weights: ``coevo_sender.py BACKEND SECONDS`` passes files to a vLLM server by its weight transfer.

It runs in vLLM's environment. Each line of its input is ``{"url", "address", "directory"}``: the server, an address at
which the server reaches this machine, and a directory with safetensors files. Its output gets the name of a directory
that has arrived, on a line; the output of libraries joins its errors. It ends with its input, or with the first error,
which stands in its standard error: what a transfer has left on either side is not used again. The server's key is the
environment's ``VLLM_API_KEY``.
"""

import json
import os
import select
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TextIO

import coevo_gloo
import requests
from safetensors import safe_open
from torch import Tensor
from vllm.distributed.weight_transfer.base import ParamMeta, TrainerInitInfo, WeightSource
from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient
from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
from vllm.distributed.weight_transfer.packed_tensor import DEFAULT_PACKED_BUFFER_SIZE_BYTES


class Files(WeightSource):
    """Tensors of the safetensors files in a directory.

    Args:
        device: where a tensor is sent from.
    """

    def __init__(self, device: str) -> None:
        self.directory = Path()
        self._device = device

    def metadata(self) -> list[ParamMeta]:
        """Name, type and shape of each tensor; reads none."""
        found = []
        for file, name in self._tensors():
            part = file.get_slice(name)
            shape = tuple(part.get_shape())
            found.append(ParamMeta(name, (part[:0] if shape else file.get_tensor(name)).dtype, shape))
        return found

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        for file, name in self._tensors():
            yield name, file.get_tensor(name).to(self._device)

    def _tensors(self) -> Iterator[tuple[Any, str]]:
        for path in sorted(self.directory.glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                yield from ((file, name) for name in file.keys())  # noqa: SIM118


class KeyedSyncClient(HTTPVLLMWeightSyncClient):
    """vLLM's client, with a key and without proxies; it has no settings for them, only its private parts."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(url, seconds)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {os.environ.get('VLLM_API_KEY', '')}"

    def _post(self, path: str, json: dict[str, Any] | None = None) -> None:
        """Post, and end the process if the server refuses: others of its threads may wait for that server."""
        try:
            response = self._session.post(f"{self.base_url}/{path}", json=json, timeout=self.timeout)
        except requests.RequestException as error:
            _end(f"RequestError: {path}: {error}")
        if not response.ok:
            _end(f"RequestError: {path} is answered with {response.status_code}: {' '.join(response.text.split())}")

    def workers(self) -> int:
        """Number of processes that hold the server's weights."""
        answer = self._session.get(f"{self.base_url}/get_world_size", timeout=self.timeout)
        answer.raise_for_status()
        return int(answer.json()["world_size"])


def main(backend: str, seconds: float, replies: TextIO) -> None:
    """Send until the input ends."""
    threading.Thread(target=_watch, daemon=True).start()
    WeightTransferTrainerFactory.register_engine(coevo_gloo.BACKEND, coevo_gloo.GlooSender)
    source, engine, url = Files("cpu" if backend == coevo_gloo.BACKEND else "cuda"), None, ""
    for line in sys.stdin:
        request = json.loads(line)
        source.directory = Path(request["directory"])
        if engine is None or request["url"] != url:
            url, client = request["url"], KeyedSyncClient(request["url"], seconds)
            client.shutdown_weight_transfer_engine()  # that of an earlier sender
            settings = _settings(backend, request, 1 + client.workers(), seconds, source)
            engine = WeightTransferTrainerFactory.trainer_init(settings, client=client, source=source)
        engine.send_weights()
        print(request["directory"], file=replies, flush=True)


def _settings(backend: str, request: Mapping[str, str], size: int, seconds: float, source: Files) -> TrainerInitInfo:
    if backend == coevo_gloo.BACKEND:
        return coevo_gloo.Sending(request["address"], size, seconds, rank=0)
    if backend == "ipc":
        largest = max(each.dtype.itemsize * prod(each.shape) for each in source.metadata())
        return IPCTrainerInitInfo(True, max(DEFAULT_PACKED_BUFFER_SIZE_BYTES, largest), rank=0)
    with socket.create_server((request["address"], 0)) as free:
        port = free.getsockname()[1]
    return NCCLTrainerInitInfo(request["address"], port, size, rank=0)


def _fail(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    """Print an error and end, whatever threads wait for."""
    _end("".join(traceback.format_exception(kind, error, at)))


def _end(words: str) -> NoReturn:
    os.write(sys.stderr.fileno(), f"{words}\n".encode())
    os._exit(1)


def _watch() -> None:
    """End with the run, which holds the other end of the input, even while a transfer hangs."""
    waiting = select.poll()
    waiting.register(sys.stdin.fileno(), 0)
    waiting.poll()
    os._exit(0)


if __name__ == "__main__":
    sys.excepthook = _fail
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    main(sys.argv[1], float(sys.argv[2]), answers)
