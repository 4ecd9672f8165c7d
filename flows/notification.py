"""Telling somebody how a night went, through one of Prefect's notification blocks.

What a block sends with (an address, a token) is a secret, and what sending raises may quote it: of a failure only its
kind is told.
"""

import asyncio
import re
from collections.abc import Awaitable

from prefect import task
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.cache_policies import NO_CACHE

from configs.errors import CoevoError

SLUG = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")


def block_of(name: str) -> NotificationBlock:
    """The notification block ``type/name`` of the server in use.

    Raises:
        CoevoError: there is none, or it cannot notify.
    """
    import prefect.blocks.notifications  # noqa: F401  (they register themselves)

    if not SLUG.fullmatch(name):
        raise CoevoError("--notify: name a block as type/name, for example slack-webhook/nightly, never its address")
    try:
        block = Block.load(name)
    except ValueError:
        raise CoevoError(f"no block {name!r} on this server: make it on its page Blocks, see `coevo ui`") from None
    if not isinstance(block, NotificationBlock):
        raise CoevoError(f"block {name!r} is a {type(block).__name__} and cannot notify: choose another one")
    return block


@task(name="notify", cache_policy=NO_CACHE, persist_result=False)
def notify(name: str, subject: str, body: str) -> None:
    """Send it.

    Raises:
        CoevoError: that did not work; says of which block, and the kind of the error.
    """
    block = block_of(name)
    try:
        with block.raise_on_failure():
            _wait_for(block.notify(body, subject))
    except Exception as error:  # noqa: BLE001  (blocks raise what they like)
        raise CoevoError(f"block {name!r} did not notify: {type(error).__name__}") from None


def _wait_for(sent: Awaitable[None] | None) -> None:
    """Prefect's own blocks have sent by now where no event loop runs; those of others may want to be awaited."""
    if sent is not None:

        async def wait() -> None:
            await sent

        asyncio.run(wait())
