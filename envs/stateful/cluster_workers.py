"""Workers on the nodes of a cluster: each node hosts ``LocalWorkers`` in an actor, which this process calls.

One call per host and turn carries all its episodes. Limits, blame and repeated attempts are those of ``LocalWorkers``,
beside the simulators. A host can be lost with all its episodes: nobody is to blame then,
and they are opened anew on another host. Nodes that join are used from the next start of episodes on.
"""

import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

from coevo.configs.placement_config import EnvironmentPool
from coevo.configs.simulator_config import SimulatorConfig
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.envs.stateful.interface import Opened, Opening, Simulator
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.process import pickled
from coevo.utilities.cluster.joined_cluster import Actor, ActorLostError, JoinedCluster, result
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Resources

POOL = "placement.pools.environments"
LOSSES = 3
"""Hosts that may end with an opening in progress before the episode is lost: its simulator may be what ends them."""
GRACE_S = 120.0
"""Seconds beyond the time limits of its requests that a host has to answer."""
REFRESH_S = 1.0
"""Seconds between two looks for nodes that have joined."""
POLL_INTERVAL_S = 0.1
"""Seconds between two looks for a host that is ready."""
HOST = f"{__name__}:SimulatorHost"


class SimulatorHost:
    """Part of the actor on a node: local workers, whose episodes have numbers.

    Args:
        simulator: the pickled simulator.
        settings: number of workers, and limits.
        python: interpreter of the workers; None for the node's.
    """

    def __init__(self, simulator: bytes, settings: SimulatorConfig, python: str | None) -> None:
        self._workers = LocalWorkers(pickle.loads(simulator), settings, python)
        self._numbers = count()
        self._handles: dict[int, object] = {}

    def start(self, openings: Sequence[Opening]) -> list[Opened | EpisodeFailure]:
        """As in ``Workers``; a handle is a number."""
        return [
            replace(each, handle=self._number(each.handle)) if isinstance(each, Opened) else each
            for each in self._workers.start(openings)
        ]

    def act(self, numbers: Sequence[int], actions: Sequence[str]) -> list[Step[None] | EpisodeFailure | None]:
        """As in ``Workers``."""
        return self._workers.act([self._handles[number] for number in numbers], actions)

    def close(self, numbers: Sequence[int]) -> None:
        """As in ``Workers``."""
        self._workers.close([self._handles.pop(number) for number in numbers if number in self._handles])

    def facts(self) -> Mapping[str, Any] | EpisodeFailure:
        """As in ``LocalWorkers``."""
        return self._workers.facts()

    def shutdown(self) -> None:
        """As in ``Workers``."""
        self._workers.shutdown()

    def _number(self, handle: object) -> int:
        number = next(self._numbers)
        self._handles[number] = handle
        return number


class _Host:
    """An actor of this pool, and the number of its episodes."""

    def __init__(self, actor: Actor) -> None:
        self.actor, self.episodes, self.lost = actor, 0, False


class _RemoteHandle(NamedTuple):
    """A live episode: its host, and its number there."""

    host: _Host
    number: int


class ClusterWorkers:
    """Hosts of one simulator on the nodes of a cluster; they start when they are first needed.

    Args:
        join: joins the cluster.
        pool: what a host takes, and how many a node has.
        seconds: time in which there must be a first host.
        simulator: source of live episodes.
        settings: number of workers of each host, and limits.
        python: interpreter of the workers; None for that of each node.
    """

    def __init__(
        self,
        join: Callable[[], JoinedCluster],
        pool: EnvironmentPool,
        seconds: float,
        simulator: Simulator,
        settings: SimulatorConfig,
        python: str | None = None,
    ) -> None:
        self._join, self._pool, self._seconds = join, pool, seconds
        self._simulator, self._settings, self._python = simulator, settings, python
        self._hosts: list[_Host] = []
        self._refreshed = -REFRESH_S
        self._books, self._placing = Lock(), Lock()

    def start(self, openings: Sequence[Opening]) -> list[Opened | EpisodeFailure]:
        """Open episodes on all hosts, side by side; those of a host that is lost are opened on another one."""
        results: dict[int, Opened | EpisodeFailure] = {}
        losses = Counter[int]()
        while left := [index for index in range(len(openings)) if index not in results]:
            shares = self._divided(left)
            seconds = self._limit([openings[index] for index in left])
            calls = {host: ("start", [openings[index] for index in share]) for host, share in shares.items()}
            for host, opened in self._called(calls, seconds).items():
                if opened is None:
                    losses.update(shares[host])
                    continue
                found = dict(zip(shares[host], opened, strict=True))
                results |= {index: self._claimed(host, each) for index, each in found.items()}
            lost = {index for index in left if index not in results and losses[index] >= LOSSES}
            results |= {index: EpisodeFailure("crash", f"{LOSSES} hosts of it have ended") for index in lost}
        return [results[index] for index in range(len(openings))]

    def act(self, handles: Sequence[object], actions: Sequence[str]) -> list[Step[None] | EpisodeFailure | None]:
        """Advance episodes by one action each, with one call per host; None for those of a host that is lost."""
        shares: dict[_Host, list[int]] = {}
        for index, handle in enumerate(handles):
            assert isinstance(handle, _RemoteHandle)
            shares.setdefault(handle.host, []).append(index)
        results: list[Step[None] | EpisodeFailure | None] = [None] * len(handles)
        calls = {
            host: ("act", [handles[index].number for index in share], [actions[index] for index in share])  # type: ignore[attr-defined]
            for host, share in shares.items()
        }
        for host, acted in self._called(calls, len(handles) * self._settings.act_seconds + GRACE_S).items():
            for index, step in zip(shares[host], acted or [None] * len(shares[host]), strict=True):
                results[index] = step
        return results

    def close(self, handles: Sequence[object]) -> None:
        """Close episodes, without a wait."""
        shares: dict[_Host, list[int]] = {}
        with self._books:
            for handle in handles:
                if isinstance(handle, _RemoteHandle):
                    handle.host.episodes -= 1
                    shares.setdefault(handle.host, []).append(handle.number)
        for host, numbers in shares.items():
            if not host.lost:
                host.actor.begin("close", numbers)

    def facts(self) -> Mapping[str, Any] | EpisodeFailure:
        """Description that the simulator gives of itself; see ``interface.Described``."""
        for _ in range(LOSSES):
            (host,) = self._divided([0])
            with self._books:
                host.episodes -= 1
            found: Mapping[str, Any] | EpisodeFailure | None = self._called(
                {host: ("facts",)}, self._settings.open_seconds + GRACE_S
            )[host]
            if found is not None:
                return found
        return EpisodeFailure("crash", f"{LOSSES} hosts of it have ended")

    def shutdown(self) -> None:
        """Close all episodes, and end all hosts."""
        hosts, self._hosts = self._hosts, []
        begun = [host.actor.begin("shutdown") for host in hosts if host.actor.pid and not host.lost]
        for each in begun:
            with suppress(CoevoError, TimeoutError):
                result(each, GRACE_S)
        for host in hosts:
            host.actor.end()

    def nodes(self) -> list[str]:
        """Address of the node of each host that is ready."""
        return [host.actor.node for host in self._ready()]

    @cached_property
    def _pickled(self) -> bytes:
        """The simulator, for hosts.

        Raises:
            CoevoError: it cannot be pickled.
        """
        return pickled(self._simulator)

    def _limit(self, openings: Sequence[Opening]) -> float:
        """Seconds that a host may take for openings, one after another, with all attempts."""
        settings = self._settings
        acts = sum(len(each.actions) + 1 for each in openings)
        whole = len(openings) * settings.open_seconds + acts * settings.act_seconds
        return (settings.retries + 1) * whole + GRACE_S

    def _claimed(self, host: _Host, each: Opened | EpisodeFailure) -> Opened | EpisodeFailure:
        """The opened episode, with a handle of ours; a failure takes no place on its host."""
        if isinstance(each, Opened):
            assert isinstance(each.handle, int)
            return replace(each, handle=_RemoteHandle(host, each.handle))
        with self._books:
            host.episodes -= 1
        return each

    def _divided(self, indices: Sequence[int]) -> dict[_Host, list[int]]:
        """Openings by host: each to the one with the fewest episodes."""
        ready = self._placed()
        shares: dict[_Host, list[int]] = {}
        with self._books:
            for index in indices:
                host = min(ready, key=lambda host: host.episodes)
                host.episodes += 1
                shares.setdefault(host, []).append(index)
        return shares

    def _called(self, calls: Mapping[_Host, tuple[Any, ...]], seconds: float) -> dict[_Host, Any]:
        """Results of calls, side by side; None for a host that is lost."""
        begun = {host: None if host.lost else host.actor.begin(*call) for host, call in calls.items()}
        give_up = time.monotonic() + seconds
        results: dict[_Host, Any] = {}
        for host, each in begun.items():
            results[host] = None
            try:
                if each is not None:
                    results[host] = result(each, give_up - time.monotonic())
            except ActorLostError:
                self._lose(host)
            except TimeoutError:
                host.actor.end()
                self._lose(host)
        return results

    def _lose(self, host: _Host) -> None:
        with self._books:
            host.lost = True
            self._hosts = [each for each in self._hosts if each is not host]
        self._refreshed = -REFRESH_S

    def _ready(self) -> list[_Host]:
        """Hosts that are ready; one that ended before is forgotten."""
        found = []
        for host in list(self._hosts):
            try:
                if host.actor.ready(0):
                    found.append(host)
            except ActorLostError:
                self._lose(host)
        return found

    def _placed(self) -> list[_Host]:
        """Hosts that are ready, at least one, on all nodes that are there now.

        Raises:
            ClusterError: no node has what a host takes, or none has it free in time.
        """
        with self._placing:
            cluster, resources = self._join(), Resources(self._pool.cpus, self._pool.gpus, self._pool.resource)
            give_up = time.monotonic() + self._seconds
            while True:
                if time.monotonic() - self._refreshed >= REFRESH_S:
                    self._place(cluster, resources)
                    self._refreshed = time.monotonic()
                if ready := self._ready():
                    return ready
                if time.monotonic() > give_up:
                    self.shutdown()
                    raise cluster.late(resources, POOL, self._seconds)
                time.sleep(POLL_INTERVAL_S)

    def _place(self, cluster: JoinedCluster, resources: Resources) -> None:
        """Start a host wherever a node has fewer than it may."""
        there = Counter(host.actor.node_id for host in self._hosts)
        for node in cluster.suited(resources, POOL):
            for _ in range(self._pool.per_node - there[node.id]):
                actor = cluster.actor(HOST, (self._pickled, self._settings, self._python), resources, node)
                with self._books:
                    self._hosts.append(_Host(actor))
