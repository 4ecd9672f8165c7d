"""Pace of a batch (``rollout.pace``): one loop plays all its episodes in step, or each has a loop of its own.

Loops of their own run in threads, which wait for the engine or the environment almost all the time. Draws have keys, so
both paces play the same episodes, apart from the engine's rounding.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Loop = Callable[[Sequence[ItemT], Event], list[ResultT]]
"""Function that plays some items until they are over or the event is set, and returns results in their order."""

LOOPS = 1024
"""Maximum number of loops at a time; further items wait for one that ends."""


def in_step(loop: Loop[ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
    """Play all items in one loop."""
    return loop(items, Event())


def each_alone(loop: Loop[ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
    """Play each item in a loop of its own, in threads; return results in the order of the items.

    The first error is raised once the other loops have ended, each after the turn that it is in.
    """
    halted = Event()
    with ThreadPoolExecutor(max(1, min(len(items), LOOPS)), thread_name_prefix="episode") as threads:
        loops = [threads.submit(loop, [item], halted) for item in items]
        try:
            ended, _ = wait(loops, return_when=FIRST_EXCEPTION)
            for failed in filter(None, (future.exception() for future in ended)):
                raise failed
        finally:
            halted.set()
            threads.shutdown(cancel_futures=True)
    return [result for future in loops for result in future.result()]
