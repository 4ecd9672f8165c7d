"""Pace of the requests to one endpoint: all questions that wait share it, so that a rate limit slows them together.

An endpoint that asks to wait (429) either says how long (``Retry-After``), and nothing is sent before; or its rate is
found: the pause between two requests grows with each refusal and shrinks with each answer.
"""

from dataclasses import dataclass
from random import uniform
from time import monotonic

from anyio import Lock, sleep

FIRST_PAUSE_S, MAX_PAUSE_S = 0.05, 60.0
"""Seconds between two requests after the first refusal, and at most."""
SLOWER, FASTER = 1.25, 0.93
"""Factors of this pause after a refusal and after an answer."""
PROBE = 0.3
"""Part of this pause after which an endpoint that has refused is asked again."""
JITTER = 0.1
"""Largest part of a pause that is added at random: several runs at one endpoint would come back together."""
BACKOFF_S, MAX_BACKOFF_S = 0.5, 8.0
"""Seconds before a failed request is sent again: at first, doubled each time, and at most."""


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
    """Times at which requests may be sent."""

    def __init__(self) -> None:
        self._spacing = 0.0
        self._next = 0.0
        self._closed = 0.0
        self._changed = 0.0

    def until(self, seconds: float) -> float:
        """Time in so many seconds."""
        return monotonic() + seconds

    async def turn(self, gate: Lock, until: float) -> float | None:
        """Wait for the turn of a request; return its time, or None if it would come after ``until``.

        Args:
            gate: lock of the event loop: turns are in the order of the calls.
            until: latest time.
        """
        async with gate:
            while (wait := max(self._next, self._closed) - monotonic()) > 0:
                if monotonic() + wait > until:
                    return None
                await sleep(wait)  # it may have grown meanwhile
            now = monotonic()
            self._next = now + jittered(self._spacing)
            return now

    def refused(self, sent: float, pause: float) -> None:
        """Slow down after a refusal.

        Args:
            sent: time of the request, from ``turn``; of requests sent before a change of pace, one refusal counts.
            pause: seconds that the endpoint asks for, 0 if it does not say.
        """
        now = monotonic()
        self._closed = max(self._closed, now + jittered(pause))
        if sent < self._changed:
            return
        self._changed = now
        if pause:
            self._spacing = max(self._spacing, FIRST_PAUSE_S)
        else:
            self._spacing = min(max(self._spacing * SLOWER, FIRST_PAUSE_S), MAX_PAUSE_S)
            self._next = now + jittered(PROBE * self._spacing)

    def answered(self) -> None:
        """Speed up after an answer."""
        self._spacing *= FASTER
        if self._spacing < FIRST_PAUSE_S / 4:
            self._spacing = 0.0


def backoff(repeats: int) -> float:
    """Seconds before a request is sent again that has failed so many times since."""
    return jittered(min(BACKOFF_S * 2.0**repeats, MAX_BACKOFF_S))


def jittered(seconds: float) -> float:
    """Seconds, and up to ``JITTER`` of them more."""
    return seconds * uniform(1.0, 1.0 + JITTER)
