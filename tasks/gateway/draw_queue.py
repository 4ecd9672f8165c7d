"""The queue before an engine: prompts of many clients become its batches, and one prompt's failure is its own.

An engine in this process has one set of buffers: one thread takes all prompts that wait, and draws them as one batch.
Servers take single prompts from many threads at once (``Engine.generate``).
"""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from coevo.models.engines.requests import Engine, Incremental, Request, TokenListener
from coevo.records.episode import Completion

AT_ONCE = 128
"""Threads that ask servers."""


class _Waiting(NamedTuple):
    """A prompt, where its completion goes, and who hears its tokens as they are drawn."""

    request: Request
    answer: "Future[Completion]"
    listener: TokenListener | None


class DrawQueue:
    """Thread-safe access to an engine, in the order of the requests.

    Args:
        engine: the engine.
        rows: maximum prompts of a batch.
        threads: threads that ask the engine.
        turn: held while the engine draws, if something else uses it as well.
    """

    def __init__(
        self, engine: Engine, rows: int, threads: int = 1, turn: AbstractContextManager[object] | None = None
    ) -> None:
        self._engine, self._rows, self._turn = engine, rows, turn or nullcontext()
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True, name=f"draw-{each}") for each in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(
        self, requests: Sequence[Request], listeners: Sequence[TokenListener] = ()
    ) -> "list[Future[Completion]]":
        """Ask for completions; each arrives by itself, or its own error does.

        Args:
            requests: the prompts.
            listeners: who hears the tokens of each, if the engine tells them before an answer is whole.
        """
        heard: Sequence[TokenListener | None] = listeners or [None] * len(requests)
        waiting = [_Waiting(request, Future(), listener) for request, listener in zip(requests, heard, strict=True)]
        for each in waiting:
            self._waiting.put(each)
        return [each.answer for each in waiting]

    def close(self) -> None:
        """Draw what waits, then end the threads."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, ended = self._batch(first)
            with self._turn:
                _answer(self._engine, batch)
            if ended:
                return

    def _batch(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """Everything that waits, up to the limit, and whether the queue was closed behind it."""
        batch = [first]
        while len(batch) < self._rows:
            try:
                found = self._waiting.get_nowait()
            except Empty:
                break
            if found is None:
                return batch, True
            batch.append(found)
        return batch, False


def _answer(engine: Engine, batch: Sequence[_Waiting]) -> None:
    asked = [each for each in batch if each.answer.set_running_or_notify_cancel()]
    if asked and not _drawn(engine, asked):
        for each in asked:
            _drawn(engine, [each])


def _drawn(engine: Engine, asked: Sequence[_Waiting]) -> bool:
    """Draw a batch; False if it failed and each of its prompts has to be drawn by itself."""
    try:
        requests, listeners = [each.request for each in asked], [each.listener for each in asked]
        if isinstance(engine, Incremental) and any(listeners):
            drawn = engine.generate_to(requests, listeners)
        else:
            drawn = engine.generate(requests)
    except BaseException as error:  # noqa: BLE001  (its client gets it, and the thread takes the next)
        if len(asked) > 1:
            return False
        asked[0].answer.set_exception(error)
        return True
    for each, completion in zip(asked, drawn, strict=True):
        each.answer.set_result(completion)
    return True
