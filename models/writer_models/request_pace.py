"""Pace of the requests to one endpoint: all questions that wait share it, so that a rate limit slows them together.

An endpoint that asks to wait (429) either says how long (``Retry-After``), and nothing is sent before; or its rate is
found: the pause between two requests grows with each refusal and shrinks with each answer. Refusals in a row are an
endpoint that is closed for a while: it is asked less and less often, and the pace of before comes back with an answer.
"""

from dataclasses import dataclass
from random import uniform
from threading import Lock
from time import monotonic
from weakref import WeakValueDictionary

from anyio import Lock as Gate
from anyio import sleep

FIRST_PAUSE_S, MAX_PAUSE_S = 0.05, 60.0
"""Seconds between two requests after the first refusal, and at most."""
SLOWER, FASTER = 1.15, 0.96
"""Factors of this pause after a refusal and after an answer."""
CLOSED = 1.3
"""Factor of this pause after a refusal that follows another one, with no answer between them."""
CALM = 6
"""Answers in a row from which on each makes the pause shorter by more than the one before."""
PROBE = 0.25
"""Part of this pause after which an endpoint that has refused once is asked again."""
MOST_SLOWER, FIRST_REOPENED_S = 2.5, 0.6
"""Largest factor of this pause over refusals in a row, and seconds up to which it may grow in any case."""
MAX_ROUND_TRIP_S = 1.0
"""Most seconds for which a request waits whether the one before is refused."""
JITTER = 0.1
"""Largest part of a pause that is added at random: several runs at one endpoint would come back together."""
BACKOFF_S, MAX_BACKOFF_S = 0.5, 8.0
"""Seconds before a failed request is sent again: at first, doubled each time, and at most."""


_OPENING, _PACES = Lock(), WeakValueDictionary[tuple[str, ...], "Pace"]()


@dataclass(slots=True)
class Traffic:
    """Counts of the requests of a writer model.

    Attributes:
        requests: all that were sent.
        repeats: of these, those that were sent again after a failure.
        refusals: answers that asked to wait, after which a request was sent again too.
        timeouts: requests that had no answer in time.
    """

    requests: int = 0
    repeats: int = 0
    refusals: int = 0
    timeouts: int = 0


class Pace:
    """Times at which requests may be sent; all that ask one endpoint share it, in whatever threads they are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._spacing = 0.0
        self._next = 0.0
        self._closed = 0.0
        self._changed = 0.0
        self._answers = 0
        self._reopened: float | None = None

    def until(self, seconds: float) -> float:
        """Time in so many seconds."""
        return monotonic() + seconds

    async def turn(self, gate: Gate, until: float) -> float | None:
        """Wait for the turn of a request; return its time, or None if it would come after ``until``.

        Args:
            gate: lock of the event loop: turns are in the order of the calls.
            until: latest time.
        """
        async with gate:
            while (wait := self._taken()) > 0:
                if monotonic() + wait > until:
                    return None
                await sleep(wait)  # it may have grown meanwhile
            return monotonic()

    def _taken(self) -> float:
        """Take the turn if it is there; return the seconds until the next one otherwise."""
        with self._lock:
            now = monotonic()
            wait = max(self._next, self._closed) - now
            if wait <= 0:
                self._next = now + jittered(self._spacing)
            return wait

    def refused(self, sent: float, pause: float) -> None:
        """Slow down after a refusal.

        Args:
            sent: time of the request, from ``turn``; of requests sent before a change of pace, one refusal counts.
            pause: seconds that the endpoint asks for, 0 if it does not say.
        """
        with self._lock:
            now = monotonic()
            self._closed = max(self._closed, now + jittered(pause))
            if sent < self._changed:
                return
            self._changed, self._answers = now, 0
            first = self._reopened is None
            if self._reopened is None:
                self._reopened = max(MOST_SLOWER * self._spacing, FIRST_REOPENED_S)
            if pause:  # what follows the first request waits at least until that may have been refused
                self._spacing = max(self._spacing, FIRST_PAUSE_S, min(now - sent, MAX_ROUND_TRIP_S))
            else:
                slower = self._spacing * (SLOWER if first else CLOSED)
                self._spacing = min(max(slower, FIRST_PAUSE_S), MAX_PAUSE_S)
                self._next = now + jittered(self._spacing * (PROBE if first else 1.0))

    def answered(self, sent: float) -> None:
        """Speed up after the answer to a request that was sent at a time."""
        with self._lock:
            self._answers += 1
            if self._reopened is not None and sent >= self._changed:
                self._reopen(self._reopened)
            self._spacing *= FASTER ** (1 + max(0, self._answers - CALM))
            if self._spacing < FIRST_PAUSE_S / 4:
                self._spacing = 0.0

    def _reopen(self, most: float) -> None:
        """Take requests again after refusals in a row: how long they lasted says little about the rate."""
        self._reopened = None
        if self._spacing > most:
            self._spacing = most
            self._next = min(self._next, monotonic() + jittered(most))


def pace_of(*endpoint: str) -> Pace:
    """The pace of an endpoint, which all in this process share that ask it.

    Args:
        endpoint: all that its limit of requests may depend on: address, model, key.
    """
    with _OPENING:
        return _PACES.setdefault(endpoint, Pace())


def backoff(repeats: int) -> float:
    """Seconds before a request is sent again that has failed so many times since."""
    return jittered(min(BACKOFF_S * 2.0**repeats, MAX_BACKOFF_S))


def jittered(seconds: float) -> float:
    """Seconds, and up to ``JITTER`` of them more."""
    return seconds * uniform(1.0, 1.0 + JITTER)
