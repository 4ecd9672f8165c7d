"""Publishing off the critical path: committed revisions in order, one after another, in a thread of its own.

A revision counts as published when the cursor says so, and the cursor moves only afterwards. What could not be
published is tried again with the next revision and at the end; what is left then waits for the next ``resume``.
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from tasks.tracking.publication import Publication
from tasks.tracking.store import TrackingError

PAUSE = 0.5
"""Seconds between attempts at the end."""


class Publisher:
    """Publishes what it is given, in the order in which it is given."""

    def __init__(
        self,
        publish: Callable[[Publication], None],
        cursor: Callable[[], int],
        advance: Callable[[int], None],
        notice: Callable[[str], None],
    ) -> None:
        """Args:
        publish: of a tracker; raises ``TrackingError`` where it must be tried again.
        cursor: the last published revision, -1 for none.
        advance: move the cursor to a revision.
        notice: told in one line when publishing begins to fail, not of each attempt.
        """
        self._publish = publish
        self._cursor = cursor
        self._advance = advance
        self._notice = notice
        self._failing = False
        self._left = False
        self._waiting: deque[Publication] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="publish")
        self._attempt: Future[TrackingError | None] | None = None

    def submit(self, publication: Publication) -> None:
        """Publish a revision soon; what the last attempt met unexpectedly is raised here."""
        if self._attempt is not None and self._attempt.done():
            self._attempt.result()
        self._waiting.append(publication)
        self._attempt = self._thread.submit(self._drain)

    def leave(self) -> None:
        """Publish nothing more than the revision under way, for a ``close`` that is to be quick."""
        self._left = True

    def close(self, patience: float = 10.0) -> str | None:
        """Wait for what is under way, and try again for ``patience`` seconds what MLflow would not take.

        Returns:
            One line on what is left unpublished, None when nothing is.
        """
        give_up = time.monotonic() + patience
        with self._thread:
            failure = self._thread.submit(self._drain).result()
            while failure is not None and not self._left and time.monotonic() < give_up:
                time.sleep(PAUSE)
                failure = self._thread.submit(self._drain).result()
        if failure is None and not self._waiting:
            return None
        return f"{self._number()} not published: {failure or 'interrupted'}; `coevo resume` publishes what is left"

    def _drain(self) -> TrackingError | None:
        while self._waiting and not self._left:
            publication = self._waiting[0]
            revision = publication.manifest.state["revision"]
            if revision > self._cursor():
                try:
                    self._publish(publication)
                except TrackingError as error:
                    self._fail(error)
                    return error
                self._failing = False
                self._advance(revision)
            self._waiting.popleft()
        return None

    def _number(self) -> str:
        return "1 revision is" if len(self._waiting) == 1 else f"{len(self._waiting)} revisions are"

    def _fail(self, error: TrackingError) -> None:
        if not self._failing:
            self._failing = True
            self._notice(f"{error}; the run goes on, and tries again with each revision")
