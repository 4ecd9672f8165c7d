"""Failures of requests to an endpoint: what each means for the question and for those that wait, in its own words."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from openai import APIStatusError

BROKEN = 500
"""Lowest status of a server that cannot answer."""
BUSY = (503, 529)
"""Status of a server with too much to do, which may ask to wait."""
TRANSIENT = (408, 409, 425)
"""Status below ``BROKEN`` of a request that may be sent again."""
PERMANENT = (401, 402, 403, 404, 405, 410)
"""Status that every other question would have too."""
LONGEST_PAUSE = 86_400.0
"""Most seconds that an endpoint is believed to ask for."""
_QUOTA = re.compile(r"billing|payment_required|insufficient_(?:quota|balance|credits|funds)", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|\b(?:no such|unknown|invalid|unsupported|no) model\b"
    r"|\bmodel\b.{0,120}?\b(?:not found|(?:does|do) not exist|doesn't exist|is not a valid|is not available)",
    re.IGNORECASE | re.DOTALL,
)
_KINDS = {
    429: re.compile(r"rate.?limit|too.?many|throttl|resource.?exhausted", re.IGNORECASE),
    401: re.compile(r"auth|permission|api.?key|forbidden", re.IGNORECASE),
    404: re.compile(r"not.?found", re.IGNORECASE),
    400: re.compile(r"invalid|bad.?request|unsupported|context.?length", re.IGNORECASE),
}
"""Status of an error that names its kind alone."""


class After(Enum):
    """Consequence of a failure."""

    WAIT = "all wait, and the question is asked again"
    AGAIN = "the question may be asked again"
    STOP = "nothing is asked for a while"
    NEXT = "the others are asked"


@dataclass(frozen=True, slots=True)
class Failure:
    """Request without an answer.

    Attributes:
        fault: reason, for a person.
        after: its consequence.
        pause: seconds that the endpoint asks for, 0 if it does not say.
        dead: True if the endpoint may not be there at all.
        prompt_tokens: tokens of the prompt that it cost all the same.
        answer_tokens: tokens that were generated all the same.
    """

    fault: str
    after: After
    pause: float = 0.0
    dead: bool = False
    prompt_tokens: int = 0
    answer_tokens: int = 0


def after(status: int, error: object, pause: float = 0.0) -> After:
    """Consequence of an error with a status.

    Args:
        status: of HTTP, also where the endpoint says it in a body that arrives with 200.
        error: content of the error.
        pause: seconds that the endpoint asks for.
    """
    said = f"{error}"
    if _QUOTA.search(" ".join(_names(error))):
        return After.STOP
    if status == 429 or (status in BUSY and pause):
        return After.WAIT
    if status in PERMANENT or status // 100 == 3 or (status == 400 and _NO_MODEL.search(said)):
        return After.STOP
    return After.AGAIN if status >= BROKEN or status in TRANSIENT else After.NEXT


def status_in(error: object) -> int:
    """Status of an error in a body that arrived with 200; 500 if it names none."""
    for name in _names(error):
        if name.isdecimal() and 300 <= int(name[:9]) < 600:
            return int(name)
        for status, kind in _KINDS.items():
            if kind.search(name):
                return status
    return BROKEN


def words_of(error: object) -> str:
    """Reason that an endpoint gives, with that of the provider behind it."""
    if not isinstance(error, Mapping):
        return f"{error or ''}"
    said = error.get("message") or error.get("detail") or error
    more = error.get("metadata")
    behind = more.get("raw") if isinstance(more, Mapping) else None
    return f"{said}: {behind}" if behind else f"{said}"


def message(error: APIStatusError) -> str:
    """Reason of a status."""
    return words_of(error.body) or str(error.response.reason_phrase)


def pause_of(headers: Mapping[str, str]) -> float:
    """Seconds that an endpoint asks for: a number, or a date; 0 if it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = float(said) / unit
        except ValueError:
            seconds = _until(said, headers.get("date", ""))
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, LONGEST_PAUSE)
    return 0.0


def _until(date: str, now: str) -> float:
    """Seconds from the endpoint's own time to a date: the clocks of two machines differ."""
    try:
        return (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _names(error: Any) -> list[str]:
    """Code, kind and status of an error, as far as it names them."""
    if not isinstance(error, Mapping):
        return []
    return [f"{error[name]}" for name in ("code", "status", "type") if isinstance(error.get(name), str | int)]
