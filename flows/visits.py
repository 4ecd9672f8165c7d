"""Browsers that may see Prefect's pages: each has opened a link of ``coevo ui``, which works once.

A browser holds two things. The cookie is out of reach of scripts, but a browser sends it to every port of 127.0.0.1,
where other users may listen. The key is kept in the storage of the page's origin, which includes the port, and
Prefect's pages send it as if it were a password. Neither of them opens anything without the other.
"""

import time
from collections.abc import Callable
from hashlib import sha256
from secrets import token_urlsafe

LINKS = "/coevo/links"
"""Where a client that has the secret gets a link."""
LINK = "/coevo/open/"
"""Beginning of a link."""
OPEN_WITHIN = 600.0
"""Seconds after which a link that nobody has opened does not work any more."""
ADMITTED_FOR = 7 * 86400.0
"""Seconds for which a browser that has opened one may come back; the end of the server ends it, too."""

PAGE = """<!doctype html><meta charset="utf-8"><title>coevo</title>
<script>localStorage.setItem("prefect-password", "{key}"); location.replace("/")</script>
<noscript>These pages need JavaScript.</noscript>
"""
"""A page, not a redirect: a browser that comes from outside gets its strict cookie sent only by a second step, which
also takes the link out of its history."""


class Visits:
    """Links and the browsers that have opened one, in memory, by digest.

    Args:
        port: of the server, in the name of the cookie: those of all ports share one jar.
        clock: seconds.
    """

    def __init__(self, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = f"coevo-{port}"
        self._clock = clock
        self._links: dict[str, float] = {}
        self._visits: dict[str, tuple[str, float]] = {}

    def link(self) -> str:
        """A new link's token."""
        token = token_urlsafe(32)
        self._links[_digest(token)] = self._clock() + OPEN_WITHIN
        return token

    def enter(self, token: str) -> tuple[str, str] | None:
        """Spend a link: the page to show and the cookie to set; None for one that is spent, too old or made up."""
        until = self._links.pop(_digest(token), None)
        if until is None or until < self._clock():
            return None
        cookie, key = token_urlsafe(32), token_urlsafe(32)
        self._visits[_digest(cookie)] = _digest(key), self._clock() + ADMITTED_FOR
        return PAGE.format(key=key), f"{self.name}={cookie}; HttpOnly; SameSite=Strict; Path=/"

    def has_cookie(self, cookie: str) -> bool:
        """Return True if the cookie allows a browser to load the pages; their data needs the key as well."""
        return self._key(cookie) is not None

    def has_both(self, cookie: str, key: str) -> bool:
        """Return True if cookie and key belong to each other."""
        return self._key(cookie) == _digest(key)

    def _key(self, cookie: str) -> str | None:
        """Digest of the key that belongs to a cookie."""
        key, until = self._visits.get(_digest(cookie), ("", 0.0))
        return key if until > self._clock() else None


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
