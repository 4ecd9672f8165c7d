"""Browsers with access to a server's pages: each has opened a link of ``coevo ui``, which works once.

A cookie alone grants nothing: browsers send it to every port of 127.0.0.1, where other users may listen. A visit
therefore needs a second value that only pages of the same origin have. Prefect's pages keep it in the storage of their
origin, which includes the port, and send it like a password (``Visits``). MLflow's pages send nothing of the kind, but
all their addresses are relative: they get a path of their own, which nobody can guess, and their cookie is sent to
addresses below it alone (``PathVisits``).
"""

import time
from collections.abc import Callable
from hashlib import sha256
from secrets import token_urlsafe

from starlette.requests import Request

LINKS = "/coevo/links"
"""Path at which a client with the secret gets a link."""
LINK = "/coevo/open/"
"""Path prefix of a link."""
OPEN_WITHIN = 600.0
"""Seconds until an unopened link expires."""
ADMITTED_FOR = 7 * 86400.0
"""Seconds of access for a browser that has opened a link; it also ends with the server."""

PAGE = """<!doctype html><meta charset="utf-8"><title>coevo</title>
<script>{keep}location.replace("{pages}" + location.hash)</script>
<noscript>These pages need JavaScript.</noscript>
"""
"""A page instead of a redirect: a browser that comes from another site sends its strict cookie only with a second
request, which also removes the link from its history."""
KEEP = """localStorage.setItem("prefect-password", "{key}"); """


class Visits:
    """Links and the browsers that have opened one, in memory, by digest.

    Args:
        port: port of the server, for the name of the cookie, since cookies do not separate ports.
        clock: function that returns seconds.
    """

    def __init__(self, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = f"coevo-{port}"
        self._clock = clock
        self._links: dict[str, float] = {}
        self._visits: dict[str, tuple[str, float]] = {}

    def link(self) -> str:
        """Create a link; return its token."""
        token = token_urlsafe(32)
        self._links[_digest(token)] = self._clock() + OPEN_WITHIN
        return token

    def enter(self, token: str) -> tuple[str, str] | None:
        """Use a link: return the page to show and the cookie to set; None if it is used, expired or unknown."""
        until = self._links.pop(_digest(token), None)
        if until is None or until < self._clock():
            return None
        cookie, key = token_urlsafe(32), token_urlsafe(32)
        self._visits[_digest(cookie)] = _digest(key), self._clock() + ADMITTED_FOR
        return self._entered(cookie, key)

    def admit(self, request: Request) -> bool:
        """Return True if a browser's visit allows a request: the pages by their cookie, their data by both values."""
        cookie = request.cookies.get(self.name, "")
        if request.scope["path"].startswith("/api"):
            return self.has_both(cookie, request.headers.get("authorization", "").removeprefix("Basic "))
        return request.method in ("GET", "HEAD") and self.has_cookie(cookie)

    def has_cookie(self, cookie: str) -> bool:
        """Return True if the cookie grants access to the pages; their data also needs the key."""
        return self._key(cookie) is not None

    def has_both(self, cookie: str, key: str) -> bool:
        """Return True if cookie and key match."""
        return self._key(cookie) == _digest(key)

    def _entered(self, cookie: str, key: str) -> tuple[str, str]:
        page = PAGE.format(keep=KEEP.format(key=key), pages="/")
        return page, f"{self.name}={cookie}; HttpOnly; SameSite=Strict; Path=/"

    def _key(self, cookie: str) -> str | None:
        """Digest of the key for a cookie, or None."""
        key, until = self._visits.get(_digest(cookie), ("", 0.0))
        return key if until > self._clock() else None


class PathVisits(Visits):
    """Visits whose pages lie below a path of their own, ``/KEY/``, in place of a key in the browser's storage."""

    def admit(self, request: Request) -> bool:
        """Return True if cookie and path of a request belong together; the path loses its first part."""
        _, key, rest = [*request.scope["path"].split("/", 2), "", ""][:3]
        if not (key and self.has_both(request.cookies.get(self.name, ""), key)):
            return False
        raw: bytes = request.scope["raw_path"]
        request.scope.update(path=f"/{rest}", raw_path=raw.removeprefix(f"/{key}".encode()))
        return True

    def _entered(self, cookie: str, key: str) -> tuple[str, str]:
        page = PAGE.format(keep="", pages=f"/{key}/")
        return page, f"{self.name}={cookie}; HttpOnly; SameSite=Strict; Path=/{key}/"


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
