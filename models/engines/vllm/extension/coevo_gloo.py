"""Weight transfer over TCP by Gloo, for servers that share neither a disk nor a fast network with the run.

A backend of vLLM's weight transfer interface (``--weight-transfer-config '{"backend": "gloo"}'``), beside its own
``nccl`` and ``ipc``. The sender is process 0 of the group, and the workers of one server are the others. The weights of
a checkpoint travel one by one; vLLM joins and splits them as it does those of a file.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.distributed import ProcessGroupGloo, TCPStore  # type: ignore[attr-defined]
from vllm.distributed.weight_transfer import WeightTransferEngine
from vllm.distributed.weight_transfer.base import (
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    VLLMWeightSyncClient,
    WeightSource,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

BACKEND = "gloo"


@dataclass
class Meeting(WeightTransferInitInfo):
    """Where a group meets: the sender's address and port, its number of processes, and its time limit in seconds."""

    address: str
    port: int
    size: int
    seconds: float


@dataclass
class Tensors(WeightTransferUpdateInfo):
    """Names, types and shapes of the tensors that follow, in order."""

    names: list[str]
    types: list[str]
    shapes: list[list[int]]


class GlooReceiver(WeightTransferEngine[Meeting, Tensors]):
    """The end in a worker of vLLM."""

    init_info_cls = Meeting
    update_info_cls = Tensors
    _group: Any = None

    def init_transfer_engine(self, init_info: Meeting) -> None:
        """Join the group of a sender."""
        limit = timedelta(seconds=init_info.seconds)
        store = TCPStore(init_info.address, init_info.port, init_info.size, is_master=False, timeout=limit)
        here = self.parallel_config
        rank = 1 + here.data_parallel_index * here.world_size + here.rank
        with socket.create_connection((init_info.address, init_info.port)) as connection:
            address = connection.getsockname()[0]
        self._group = _group(store, rank, init_info.size, limit, address)

    def start_weight_update(self) -> None:
        """Prepare the layers for the weights of a checkpoint."""
        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: Tensors) -> None:
        """Receive every tensor, and load it."""
        try:
            self.model.load_weights(self._arriving(update_info))
        except BaseException:
            self.finish_weight_update()  # or the next weights would complete layers that are half loaded
            raise

    def finish_weight_update(self) -> None:
        """Bring the loaded weights into the form that the layers compute with."""
        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        """Leave the group."""
        self._group = None

    def _arriving(self, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
        for name, kind, shape in zip(tensors.names, tensors.types, tensors.shapes, strict=True):
            value = torch.empty(shape, dtype=getattr(torch, kind))
            _broadcast(self._group, value)
            yield name, value.to(self.device)


@dataclass
class Sending(TrainerInitInfo):
    """The sender's settings: an address at which the workers reach it, the size of the group, its limit in seconds."""

    backend: ClassVar[str] = BACKEND
    address: str
    size: int
    seconds: float


class GlooSender(TrainerWeightTransferEngine[Sending]):
    """The end that has the weights."""

    init_info_cls = Sending
    _group: Any = None

    @classmethod
    def trainer_init(
        cls, init_info: Sending, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> Self:
        """Open a group on a free port, and let the workers join it."""
        sender, limit = cls(client=client, source=source, is_sender=True), timedelta(seconds=init_info.seconds)
        store = _store(init_info.address, init_info.size, limit)
        meeting = Meeting(init_info.address, store.port, init_info.size, init_info.seconds)
        with ThreadPoolExecutor(1) as aside:
            joined = aside.submit(client.init_weight_transfer_engine, asdict(meeting))
            sender._group = _group(store, 0, init_info.size, limit, init_info.address)
            joined.result()
        return sender

    def send_weights(self) -> None:
        """Send every tensor of the source; the workers receive at the same time."""
        meta = self.source.metadata()
        types = [str(each.dtype).removeprefix("torch.") for each in meta]
        tensors = Tensors([each.name for each in meta], types, [[*each.shape] for each in meta])
        self.client.start_weight_update()
        with ThreadPoolExecutor(1) as aside:
            loaded = aside.submit(self.client.update_weights, asdict(tensors))
            for _, value in self.source:
                _broadcast(self._group, value)
            loaded.result()
        self.client.finish_weight_update()

    def shutdown(self) -> None:
        """Close the group."""
        self._group = None


def _store(address: str, size: int, limit: timedelta) -> Any:
    """Meeting place on a free port of this address alone; by itself, a store listens on all of them."""
    listener = socket.create_server((address, 0))
    port, descriptor = listener.getsockname()[1], listener.detach()
    # PyTorch's own backend for this takes no descriptor.
    return TCPStore(
        address, port, size, True, limit, wait_for_workers=False, master_listen_fd=descriptor, use_libuv=False
    )


def _group(store: Any, rank: int, size: int, limit: timedelta, address: str) -> Any:
    """Process group that connects through this address; by itself, Gloo takes that of the machine's name."""
    gloo: Any = ProcessGroupGloo
    options = gloo._Options()  # the only way to name an address; a real server in the tests proves it
    options._devices, options._timeout = [gloo.create_device(hostname=address)], limit
    return gloo(store, rank, size, options)


def _broadcast(group: Any, value: Tensor) -> None:
    """Send a tensor from process 0 to the others, as bytes: Gloo does not know every type."""
    group.broadcast(value.view(-1).view(torch.uint8), 0).wait()
