"""Limits of a request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest request of an endpoint.

    Attributes:
        body: bytes of a request.
        rows: rows of a request.
        text: bytes of all text in a row, in UTF-8; a token takes at least one.
    """

    body: int
    rows: int
    text: int


DEFAULT = Limits(body=4 * 2**20, rows=256, text=64 * 2**10)
