"""Bound on the bytes that sessions of the gateway, or conversations with a served agent, take in memory."""

from threading import Lock

from coevo.utilities.errors import CoevoError

MIB = 2**20


class FullError(CoevoError):
    """There are as many sessions, or answers, as the gateway may hold."""


class MemoryBound:
    """Bytes that sessions take, within a bound.

    Args:
        most: the bound, in bytes.
        full: what is full and what to do, if it is reached.
        outer: another bound within which these bytes are.

    Attributes:
        used: bytes.
    """

    def __init__(self, most: int, full: str, outer: "MemoryBound | None" = None) -> None:
        self._most, self._full, self._outer = most, full, outer
        self._counting = Lock()
        self.used = 0

    def check(self, more: int = 0) -> None:
        """Check that there is room for more bytes.

        Raises:
            FullError: there is not.
        """
        if self.used + more > self._most:
            raise FullError(f"{self._full}: at most {self._most / MIB:g} MiB")
        if self._outer is not None:
            self._outer.check(more)

    def take(self, more: int) -> None:
        """Count bytes if there is room.

        Raises:
            FullError: there is not.
        """
        self.check(more)
        self.add(more)

    def add(self, more: int) -> None:
        """Count bytes that are there already; a negative number frees them."""
        with self._counting:  # a thread that keeps a session frees its bytes
            self.used += more
            outer = self._outer
        if outer is not None:
            outer.add(more)

    def leave(self) -> None:
        """Free these bytes in the outer bound, which counts them no longer."""
        with self._counting:
            used, outer, self._outer = self.used, self._outer, None
        if outer is not None:
            outer.add(-used)
