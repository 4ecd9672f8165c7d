"""Routing of groups to replicas: always the same replica, so that a group's prefix is computed once."""

from collections import Counter
from collections.abc import Sequence
from threading import Lock


class Routing:
    """Groups divided among replicas by the number of their rows.

    Args:
        replicas: number of replicas.
    """

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._of: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._settling = Lock()

    def settle(self, group: str) -> int:
        """Replica of a group whose requests come one by one; a new group gets the one with the fewest groups."""
        with self._settling:
            if group in self._of:  # the last row of a batch
                return self._of[group]
            if group not in self._settled:
                groups = Counter(self._settled.values())
                self._settled[group] = min(self._all(), key=lambda replica: groups[replica])
            return self._settled[group]

    def forget(self) -> None:
        """Place every group anew from now on."""
        with self._settling:
            self._settled.clear()

    def divide(self, groups: Sequence[str]) -> list[list[int]]:
        """Rows of each replica, in order; ``groups`` names the group of each row.

        A group keeps its replica as long as it has requests; a new one, the largest first, goes to the replica with the
        fewest rows.
        """
        sizes = Counter(groups)
        self._of = {group: replica for group, replica in self._of.items() if group in sizes}
        loads = [sum(sizes[group] for group, at in self._of.items() if at == replica) for replica in self._all()]
        for group, size in sizes.most_common():
            if group not in self._of:
                self._of[group] = loads.index(min(loads))
                loads[self._of[group]] += size
        return [[row for row, group in enumerate(groups) if self._of[group] == replica] for replica in self._all()]

    def _all(self) -> range:
        return range(self._replicas)
