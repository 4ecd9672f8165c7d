"""Notification about a session, through one of Prefect's notification blocks.

A block's address or token is a secret, and an exception of the block may quote it. An error therefore reports only the
type of that exception.
"""

import asyncio
import re
from collections.abc import Awaitable

from prefect import task
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.cache_policies import NO_CACHE

from coevo.utilities.errors import CoevoError

SLUG = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")


def block_of(name: str) -> NotificationBlock:
    """Load the notification block ``type/name`` from the server in use.

    Raises:
        CoevoError: the block does not exist, or cannot notify.
    """
    import prefect.blocks.notifications  # noqa: F401  (the import registers them)

    if not SLUG.fullmatch(name):
        raise CoevoError("--notify: name a block as type/name, for example slack-webhook/team, never its address")
    try:
        block = Block.load(name)
    except ValueError:
        raise CoevoError(f"no block {name!r} on this server: create it on the Blocks page of `coevo ui`") from None
    if not isinstance(block, NotificationBlock):
        raise CoevoError(f"block {name!r} is a {type(block).__name__} and cannot notify: choose another one")
    return block


@task(name="notify", cache_policy=NO_CACHE, persist_result=False)
def notify(name: str, subject: str, body: str) -> None:
    """Send a notification.

    Raises:
        CoevoError: the block failed; the message names the block and the type of the error.
    """
    block = block_of(name)
    try:
        with block.raise_on_failure():
            _wait_for(block.notify(body, subject))
    except Exception as error:  # noqa: BLE001  (blocks may raise any exception)
        raise CoevoError(f"block {name!r} did not notify: {type(error).__name__}") from None


def _wait_for(sent: Awaitable[None] | None) -> None:
    """Await a notification; Prefect's own blocks have already sent it, since no event loop runs here."""
    if sent is not None:

        async def wait() -> None:
            await sent

        asyncio.run(wait())
