"""A cluster that this process has joined: its nodes, actors on them, and what it lacks.

Nothing here waits without a limit: for the cluster's answer, for room on a node, for the result of a call.
"""

import logging
import os
import pickle
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from threading import RLock, Thread
from typing import Any

from coevo.utilities.cluster.node_agent import AgentAnswer, NodeAgent
from coevo.utilities.cluster.setting_names import OF_RUN, SettingNames
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import missing_extra
from coevo.utilities.local_http import LOOPBACK
from coevo.utilities.processes import PlaceLostError, Resources

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
"""Settings of every process of ours that speaks to Ray."""
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Keeps all sockets of Ray's processes on 127.0.0.1; the obvious setting, ``--node-ip-address``, is ignored by some."""
CONNECT_TIMEOUT_S = 5.0
"""Seconds for the first connection to a cluster's address."""
SHARE = 0.001
"""Amount of a custom resource that a process takes: it selects nodes, and counts nothing."""
INTERNAL = ("node:", "memory", "object_store_memory", "accelerator_type")
"""First parts of the names of resources that Ray adds by itself."""
CONCURRENCY = 32
"""Most calls that an actor carries out side by side."""
_joining = RLock()
_joined = set[str]()


class ClusterError(CoevoError):
    """The cluster does not answer, refuses us, or lacks what is asked for."""


class ActorLostError(PlaceLostError):
    """An actor has ended: with its node, by itself, or because it gave no answer."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A living node.

    Attributes:
        id: its id in the cluster.
        address: its address.
        total: all its resources, by Ray's names.
        free: those that nobody has taken.
    """

    id: str
    address: str
    total: Mapping[str, float]
    free: Mapping[str, float]

    def has(self, asked: Mapping[str, float], free: bool = False) -> bool:
        """Return True if the node has resources, or has them free."""
        there = self.free if free else self.total
        return all(there.get(name, 0.0) >= amount for name, amount in asked.items())


class Actor:
    """A part in a process of a node.

    Attributes:
        node: address of its node.
        node_id: id of its node.
        pid: process id; 0 until it is ready.
    """

    def __init__(self, remote: Any, node: ClusterNode, part: str, arguments: Sequence[Any]) -> None:
        self.node, self.node_id, self.pid = node.address, node.id, 0
        self._remote = remote
        self._starting = remote.host.remote(part, pickle.dumps(tuple(arguments)))

    def ready(self, seconds: float) -> bool:
        """Wait until its part is ready, or the time is over.

        Raises:
            ActorLostError: it has ended.
            CoevoError: its part cannot be made.
        """
        if not self.pid:
            try:
                self.pid = result(self._starting, seconds)
            except TimeoutError:
                return False
        return True

    def begin(self, method: str, *arguments: Any) -> Any:
        """Begin a call; ``result`` waits for what it returns. An argument may be the result of ``put``."""
        return self._remote.call.remote(method, *arguments)

    def call(self, method: str, *arguments: Any, seconds: float) -> Any:
        """Call a method of its part; an actor without an answer in that time is ended.

        Raises:
            ActorLostError: it has ended, or is ended here.
            CoevoError: raised by the method.
        """
        try:
            return result(self.begin(method, *arguments), seconds)
        except TimeoutError:
            self.end()
            raise ActorLostError(f"the process on {self.node} gave no answer in {seconds:g} s and was ended") from None

    def end(self) -> None:
        """End its process at once."""
        import ray

        ray.kill(self._remote)


def result(begun: Any, seconds: float) -> Any:
    """Result of a call.

    Raises:
        ActorLostError: its actor has ended.
        TimeoutError: the time is over.
        CoevoError: raised by the method.
    """
    import ray
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError

    try:
        outcome: AgentAnswer = ray.get(begun, timeout=max(0.0, seconds))
    except GetTimeoutError:
        raise TimeoutError from None
    except RayTaskError as error:
        raise ClusterError(f"a process of the cluster failed: {_line(error)}") from error
    except RayError as error:  # it, its node or what it owns has gone
        raise ActorLostError(f"a process of the cluster has ended: {_line(error)}") from None
    if outcome.error:
        raise CoevoError(outcome.error)
    return outcome.value


class Reservation:
    """Reserved resources for several processes, free again after the last one has left.

    Attributes:
        group: Ray's placement group.
        nodes: the node of each.
    """

    def __init__(self, group: Any, count: int) -> None:
        self.group, self.nodes = group, list[ClusterNode]()
        self._left = count

    def leave(self) -> None:
        """One of them has ended."""
        self._left -= 1
        if not self._left:
            self.release()

    def release(self) -> None:
        """Free all of it."""
        from ray.util import remove_placement_group

        remove_placement_group(self.group)


class JoinedCluster:
    """A cluster that this process has joined; ``joined`` returns it.

    Attributes:
        address: its address.
    """

    def __init__(self, address: str, names: SettingNames = OF_RUN) -> None:
        self.address, self._names = address, names

    def nodes(self) -> list[ClusterNode]:
        """Living nodes, in the order of their addresses and ids."""
        import ray
        from ray._private.state import available_resources_per_node

        free = available_resources_per_node()
        found = [
            ClusterNode(each["NodeID"], each["NodeManagerAddress"], each["Resources"], free.get(each["NodeID"], {}))
            for each in ray.nodes()
            if each["Alive"]
        ]
        return sorted(found, key=lambda node: (node.address, node.id))

    def actor(
        self,
        part: str,
        arguments: Sequence[Any],
        resources: Resources,
        node: ClusterNode,
        reserved: tuple[Reservation, int] | None = None,
    ) -> Actor:
        """Start an actor on a node, without a wait for it.

        Args:
            part: ``module:Class`` that it hosts.
            arguments: of the class, for pickle.
            resources: what it takes of the node.
            node: the node.
            reserved: its reservation, and its number there; None to take of what is free.
        """
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

        strategy: Any = NodeAffinitySchedulingStrategy(node.id, soft=False)
        if reserved is not None:
            strategy = PlacementGroupSchedulingStrategy(reserved[0].group, reserved[1])
        remote = ray.remote(NodeAgent).options(
            num_cpus=resources.cpus,
            num_gpus=resources.gpus,
            resources={resources.resource: SHARE} if resources.resource else {},
            max_concurrency=CONCURRENCY,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=strategy,
        )
        folders = [os.path.abspath(path) for path in sys.path if path]  # noqa: PTH100 - as Python names it
        return Actor(remote.remote(folders), node, part, arguments)

    def reserve(self, count: int, resources: Resources, pool: str, seconds: float) -> Reservation:
        """Reserve room for processes, all of them or none, on as few nodes as have it.

        Raises:
            ClusterError: no node can have one of them, or there is no room for all in time.
            ActorLostError: a node has gone meanwhile.
        """
        from ray.util import placement_group, placement_group_table

        self.suited(resources, pool)
        group = placement_group([asked(resources) or {"CPU": SHARE}] * count, strategy="PACK")
        reservation = Reservation(group, count)
        try:
            if not group.wait(ceil(seconds)):
                each = pool if count == 1 else f"{pool}, for each of {count} processes,"
                raise self.lacking(resources, each, seconds)
            there = {node.id: node for node in self.nodes()}
            placed = placement_group_table(group)["bundles_to_node_id"]
            reservation.nodes += [there[placed[index]] for index in range(count)]
        except BaseException as error:
            reservation.release()
            if isinstance(error, KeyError):
                raise ActorLostError("a node of the cluster ended before its process started") from None
            raise
        return reservation

    def put(self, value: Any) -> Any:
        """Store an object in the cluster, for calls of several actors."""
        import ray

        return ray.put(value)

    def suited(self, resources: Resources, pool: str) -> list[ClusterNode]:
        """Nodes that have resources, free or not.

        Raises:
            ClusterError: none has; says what is asked and what each node has.
        """
        nodes = self.nodes()
        found = [node for node in nodes if node.has(asked(resources))]
        if not found:
            raise ClusterError(f"{pool} asks for {_written(asked(resources))} of a node, and {_offer(nodes, False)}")
        return found

    def capacity(self, resources: Resources, pool: str) -> int:
        """Number of processes for which the nodes have room, free or not. Raises ``ClusterError`` for none."""
        named, nodes = asked(resources), self.suited(resources, pool)
        return sum(min([int(node.total[name] / each) for name, each in named.items()], default=1) for node in nodes)

    def lacking(self, resources: Resources, pool: str, seconds: float, missed: str = "none had it") -> ClusterError:
        """Error of a process for which no room was found: says what is asked and what each node has free."""
        wanted, limit = _written(asked(resources)), f"{self._names.limit}{seconds:g} s"
        return ClusterError(
            f"{pool} asks for {wanted} of a node, and {missed} in {limit}: {_offer(self.nodes(), True)}"
        )

    def late(self, resources: Resources, pool: str, seconds: float) -> ClusterError:
        """Error of processes that were not ready in time, though there may have been room."""
        return self.lacking(resources, pool, seconds, "no process with it was ready (a node with room was too busy)")


def asked(resources: Resources) -> dict[str, float]:
    """Resources by Ray's names, those alone that are asked for."""
    named = {"CPU": resources.cpus, "GPU": resources.gpus}
    named |= {resources.resource: SHARE} if resources.resource else {}
    return {name: amount for name, amount in named.items() if amount}


def joined(address: str, seconds: float, names: SettingNames = OF_RUN) -> JoinedCluster:
    """The cluster at ``HOST:PORT``, or ``auto`` for that of ``RAY_ADDRESS``; this process joins it at the first call.

    ``names`` are those of the settings that hold the address and the time, for messages.

    Raises:
        ClusterError: nobody answers there in ``seconds``, the token is refused, or Ray is not installed.
    """
    address = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    if not address:
        raise ClusterError(f"{names.address}=auto finds no cluster: `coevo cluster up`, or set RAY_ADDRESS")
    with _joining:
        if address not in _joined:
            leave()
            _connect(address, seconds, names)
            _joined.add(address)
        return JoinedCluster(address, names)


def leave() -> None:
    """Leave the cluster that this process has joined, if any; all its actors end."""
    with _joining:
        if _joined:
            import ray

            _joined.clear()
            ray.shutdown()


def _connect(address: str, seconds: float, names: SettingNames) -> None:
    """Join a cluster, in a thread: Ray waits without a limit where an agent of a node is late."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise ClusterError(f"{address[:100]!r} is no cluster's address: write HOST:PORT, or auto")
    give_up = time.monotonic() + seconds
    try:
        with socket.create_connection((host, int(port)), min(CONNECT_TIMEOUT_S, seconds)):
            pass
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({error}): start one with `coevo cluster up`, or correct "
            f"{names.address}"
        ) from None
    os.environ |= QUIET | (ON_LOOPBACK if host == LOOPBACK else {})
    failed: list[Exception] = []
    thread = Thread(target=_initialise, args=(address, host, failed), daemon=True)
    thread.start()
    thread.join(max(0.0, give_up - time.monotonic()))
    if failed:
        raise _refused(address, failed[0]) from None
    if thread.is_alive():
        raise ClusterError(
            f"the Ray cluster at {address} gave no answer in {names.limit}{seconds:g} s: a token that it "
            "refuses (RAY_AUTH_TOKEN_PATH), no node of it on this machine, or a machine that is too busy"
        )


def _initialise(address: str, host: str, failed: list[Exception]) -> None:
    try:
        import ray
        from ray._private import ray_constants, worker

        if ray.is_initialized():
            raise ClusterError("this process has joined a Ray cluster by itself: call ray.shutdown() first")
        # Pages of a dead node's log would go to standard output, whatever log_to_driver says.
        worker.print_to_stdstream = lambda *_, **__: None
        logging.getLogger("ray").setLevel(logging.ERROR)
        ray_constants.ENABLE_RAY_CLUSTER &= host != LOOPBACK  # as ``ON_LOOPBACK``, where Ray was imported before
        here = {"_node_ip_address": LOOPBACK} if host == LOOPBACK else {}
        ray.init(address, log_to_driver=False, configure_logging=False, logging_level="error", **here)
    except Exception as error:  # noqa: BLE001 - handed to the thread that waits
        failed.append(error)


def _refused(address: str, error: Exception) -> CoevoError:
    if isinstance(error, ClusterError):
        return error
    if isinstance(error, ImportError):
        return ClusterError(missing_extra(error) or f"Ray cannot be imported: {_line(error)}")
    if type(error).__name__ == "AuthenticationError":
        return ClusterError(f"the Ray cluster at {address} refuses us: let RAY_AUTH_TOKEN_PATH name its token")
    return ClusterError(
        f"the Ray cluster at {address} does not take us ({_line(error)}): let RAY_AUTH_TOKEN_PATH name its token, and "
        "start a node of it on this machine"
    )


def _offer(nodes: Iterable[ClusterNode], free: bool) -> str:
    """Resources that each node has, or has free."""
    offers = []
    for node in nodes:
        names = [name for name in node.total if name in ("CPU", "GPU") or not name.startswith(INTERNAL)]
        amounts = {name: (node.free if free else node.total).get(name, 0.0) for name in names}
        offers.append(f"{node.address} has {_written(amounts)}{' free' if free else ''}")
    return "; ".join(offers) or "the cluster has no node"


def _written(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in sorted(amounts.items())) or "nothing"


def _line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:300]
