"""The gate before a gateway's policy: requests pass while a committed policy is served, and wait while a run learns.

So nothing is drawn from weights that change, and the run has the engine to itself once the gate is closed.
"""

import asyncio
from concurrent.futures import Future
from threading import Condition

from coevo.tasks.gateway.gateway_session import OverError


class RequestGate:
    """A gate that one thread opens and closes, and requests of an event loop pass.

    Args:
        is_open: whether requests pass at first.
    """

    def __init__(self, is_open: bool = True) -> None:
        self._changed = Condition()
        self._is_open, self._inside, self._ended = is_open, 0, ""
        self._waiting: list[Future[None]] = []

    async def enter(self) -> None:
        """Pass the gate once it is open; ``leave`` has to follow.

        Raises:
            OverError: it is closed for good.
        """
        while (opened := self._pass()) is not None:
            await asyncio.wrap_future(opened)

    def leave(self) -> None:
        """Note that a request which has passed needs the policy no longer."""
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def open(self) -> None:
        """Let requests pass, those that wait first."""
        with self._changed:
            self._is_open = True
        self._release()

    def shut(self) -> None:
        """Let no further request pass."""
        with self._changed:
            self._is_open = False

    def close(self) -> None:
        """Let no further request pass, and wait for the answers of those that have."""
        self.shut()
        with self._changed:
            self._changed.wait_for(lambda: not self._inside)

    def end(self, reason: str) -> None:
        """Close for good; requests that wait, and all that come, are refused with the reason."""
        with self._changed:
            self._is_open, self._ended = False, reason
        self._release()

    def _pass(self) -> "Future[None] | None":
        """Future that a request has to wait for; None if it has passed."""
        with self._changed:
            if self._ended:
                raise OverError(self._ended)
            if self._is_open:
                self._inside += 1
                return None
            opened: Future[None] = Future()
            self._waiting.append(opened)
            return opened

    def _release(self) -> None:
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for opened in waiting:
            if opened.set_running_or_notify_cancel():
                opened.set_result(None)
