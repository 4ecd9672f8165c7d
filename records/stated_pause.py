"""Seconds that an endpoint asks to wait, as providers spell them in headers and in words."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

MAX_PAUSE_S: Final = 86_400.0
"""Most seconds that an endpoint is believed to ask for."""
DEPTH: Final = 8
"""Most contents within each other, and most items of a list, that are read."""
_NUMBER = r"\d{1,6}(?:\.\d{0,9})?"
_DURATION = re.compile(
    rf"(?:({_NUMBER}) ?h(?:ours?)?)? ?(?:({_NUMBER}) ?m(?:in(?:ute)?s?)?)? ?(?:({_NUMBER}) ?s(?:ec(?:ond)?s?)?)? ?"
    rf"(?:({_NUMBER}) ?(?:ms|milliseconds?))?"
)
_SAID = re.compile(
    rf"\b(?:again|retry|wait)\b(?: (?:in|after|for))?(?: (?:about|approximately))? "
    rf"(?P<pause>{_NUMBER} ?[a-z]{{1,12}}(?: ?{_NUMBER} ?[a-z]{{1,12}}){{0,2}})",
    re.IGNORECASE,
)
"""Words of an error, as ``Please try again in 6m0s``."""
_FIELDS = ("retry_after", "retryafter", "retrydelay", "retry_after_seconds")
_INSIDE = ("error", "errors", "details", "detail", "metadata", "message", "msg", "parameters")


def pause_of(headers: Mapping[str, str]) -> float:
    """Seconds that headers ask for: a number, a duration as ``1m30s``, or a date; 0 if they do not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = _duration(said) / unit
        except ValueError:
            seconds = _until(said, headers.get("date", ""))
        if pause := _believed(seconds):
            return pause
    return 0.0


def pause_in(error: Any, depth: int = DEPTH) -> float:
    """Seconds that the content of an error asks for, in a field or in its words; 0 if it does not say."""
    if isinstance(error, str):
        return max((_stated(found["pause"]) for found in _SAID.finditer(error[:2000])), default=0.0)
    if isinstance(error, list):
        return max((pause_in(each, depth - 1) for each in error[:DEPTH]), default=0.0) if depth else 0.0
    if not isinstance(error, Mapping) or not depth:
        return 0.0
    own = [_stated(value) for name, value in error.items() if f"{name}".lower() in _FIELDS]
    return max([*own, *(pause_in(error.get(name), depth - 1) for name in _INSIDE)], default=0.0)


def _stated(said: Any) -> float:
    try:
        return _believed(_duration(f"{said}"))
    except ValueError:
        return 0.0


def _believed(seconds: float) -> float:
    return min(seconds, MAX_PAUSE_S) if math.isfinite(seconds) and seconds > 0 else 0.0


def _duration(said: str) -> float:
    """Seconds, or another unit, that is stated; lines of a header may be joined by commas. ``ValueError`` if none."""
    first = said.partition(",")[0].strip().lower()
    parts = _DURATION.fullmatch(first)
    if not parts or not first:
        return float(first)
    return sum(float(part or 0) * size for part, size in zip(parts.groups(), (3600, 60, 1, 0.001), strict=True))


def _until(date: str, now: str) -> float:
    """Seconds from the endpoint's own time to a date, as the clocks of two machines differ; else from this one's."""
    then = _time(date)
    return (then - (_time(now) or datetime.now(UTC))).total_seconds() if then else 0.0


def _time(date: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(date)
    except (ValueError, TypeError, OverflowError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
