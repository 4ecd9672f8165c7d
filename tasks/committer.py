"""Committing beside the rollout that follows: that changes nothing of what a sealed revision is made of."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

from tasks.commit import commit
from tasks.publish import publish
from tasks.seal import Sealed, seal
from tasks.session import Session, Stores


class Committer:
    """Commits and publishes revisions, one at a time, in a thread of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")
        self._running: Future[None] | None = None

    def begin(self) -> None:
        """Seal the revision in the making, and begin to commit it."""
        sealed = seal(self._session)
        self._running = self._thread.submit(copy_context().run, _keep, self._session.stores, sealed)

    def wait(self) -> None:
        """Wait until what was sealed is committed; what that raised is raised here.

        Until then nothing may be staged for the next revision.
        """
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def close(self) -> None:
        """Wait likewise, and let the thread go; call it whatever has happened since."""
        with self._thread:
            self.wait()


def _keep(stores: Stores, sealed: Sealed) -> None:
    publish(stores, sealed, commit(stores, sealed))
