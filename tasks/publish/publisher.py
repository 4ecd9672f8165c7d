"""Publishing off the critical path: committed revisions, in order, in a separate thread.

A revision counts as published when the cursor has reached it, and the cursor moves only afterwards. Failed publications
are tried again with the next revision and at the end; the next ``resume`` publishes what then remains.
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracking_store import TrackingError

RETRY_INTERVAL_S = 0.5
"""Seconds between attempts at the end."""


class Publisher:
    """Publisher of revisions, in the order of their submission."""

    def __init__(
        self,
        publish: Callable[[Publication], None],
        cursor: Callable[[], int],
        advance: Callable[[int], None],
        notice: Callable[[str], None],
    ) -> None:
        """Args:
        publish: method of a tracker; raises ``TrackingError`` if the publication has to be repeated.
        cursor: returns the last published revision, -1 for none.
        advance: moves the cursor to a revision.
        notice: receives a line when publishing begins to fail, not for each attempt.
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
        """Schedule a revision; unexpected exceptions of the last attempt are raised here."""
        if self._attempt is not None and self._attempt.done():
            self._attempt.result()
        self._waiting.append(publication)
        self._attempt = self._thread.submit(self._drain)

    def announce(self, tell: Callable[[], None]) -> None:
        """Schedule a message beside the revisions; one that fails is not repeated, as each revision says the same."""
        self._thread.submit(self._tell, tell)

    def leave(self) -> None:
        """Publish only the revision in progress, so that ``close`` is quick."""
        self._left = True

    def close(self, patience: float = 10.0) -> str | None:
        """Wait for the revision in progress, and retry failed publications for ``patience`` seconds.

        Returns:
            One line about unpublished revisions, or None.
        """
        give_up = time.monotonic() + patience
        with self._thread:
            failure = self._thread.submit(self._drain).result()
            while failure is not None and not self._left and time.monotonic() < give_up:
                time.sleep(RETRY_INTERVAL_S)
                failure = self._thread.submit(self._drain).result()
        if failure is None and not self._waiting:
            return None
        return f"{self._number()} not published: {failure or 'interrupted'}; `coevo resume` publishes the rest"

    def _tell(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except TrackingError as error:
            self._fail(error)

    def _drain(self) -> TrackingError | None:
        while self._waiting and not self._left:
            publication = self._waiting[0]
            revision = publication.revision
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
            self._notice(f"{error}; the run continues and tries again with each revision")
