"""A thread that works for many clients in turn, so that none of them waits for all that another one asked."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class FairThread:
    """One thread. Clients take turns, each with its own work in order; for one event loop.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: OrderedDict[Hashable, deque[tuple[Callable[[], Any], asyncio.Future[Any]]]] = OrderedDict()
        self._is_busy = False

    async def run(self, client: Hashable, act: Callable[[], T]) -> T:
        """Do something for a client in the thread, and return its result or raise its error."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append((act, done))
        if not self._is_busy:
            self._is_busy = True
            asyncio.ensure_future(self._work())  # noqa: RUF006  (it ends with the work, which others wait for)
        return await done

    def close(self) -> None:
        """End the thread, after what it is doing."""
        self._thread.shutdown()

    async def _work(self) -> None:
        while self._waiting:
            client, acts = self._waiting.popitem(last=False)
            act, done = acts.popleft()
            if acts:
                self._waiting[client] = acts
            if done.cancelled():
                continue
            try:
                result = await asyncio.get_running_loop().run_in_executor(self._thread, act)
            except BaseException as error:  # noqa: BLE001  (its client gets it, and the next one has its turn)
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(result)
        self._is_busy = False
