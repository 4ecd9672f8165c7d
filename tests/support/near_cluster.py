"""A cluster without Ray: its actors are objects of this process, whose calls travel as pickles, and can be lost."""

import os
import pickle
from contextlib import contextmanager
from types import SimpleNamespace

from coevo.utilities.cluster.joined_cluster import ActorLostError, ClusterError
from coevo.utilities.cluster.node_agent import NodeAgent
from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import LOOPBACK


class NearActor:
    """An actor; ``lose`` ends it as the death of its node does."""

    def __init__(self, part, arguments):
        self.node, self.node_id, self.pid, self.lost = LOOPBACK, "n", 0, False
        self.agent = NodeAgent([])
        assert not self.agent.host(part, pickle.dumps(tuple(arguments))).error

    def ready(self, seconds):
        if self.lost:
            raise ActorLostError("its node has gone")
        self.pid = os.getpid()
        return True

    def call(self, method, *arguments, seconds):
        if self.lost:
            raise ActorLostError("its node has gone")
        answer = pickle.loads(pickle.dumps(self.agent.call(method, *pickle.loads(pickle.dumps(arguments)))))
        if answer.error:
            raise CoevoError(answer.error)
        return answer.value

    def end(self):
        if not self.lost:
            self.lost = True
            self.agent.call("end")

    lose = end


class NearCluster:
    """A cluster with so many places at a time; ``dying`` of the next actors are lost while they start."""

    def __init__(self, room):
        self.room, self.actors, self.free, self.dying = room, [], room, 0

    def reserve(self, count, resources, pool, seconds):
        if count > self.free:
            raise ClusterError(f"{pool} asks for {count} places, and {self.free} are free")
        self.free -= count
        left = [count]

        def leave():
            left[0] -= 1
            self.free += count if left[0] == 0 else 0

        node = SimpleNamespace(address=LOOPBACK)
        return SimpleNamespace(nodes=[node] * count, leave=leave, release=lambda: None)

    def actor(self, part, arguments, resources, node, reserved):
        self.actors.append(NearActor(part, arguments))
        if self.dying:
            self.dying -= 1
            self.actors[-1].lose()
        return self.actors[-1]

    def capacity(self, resources, pool):
        return self.room

    def put(self, value):
        return value


@contextmanager
def near_cluster(room):
    """A cluster with so many places, whose actors end with it."""
    made = NearCluster(room)
    yield made
    for actor in made.actors:
        actor.end()
