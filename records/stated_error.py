"""Error that an endpoint states in a body, as providers spell it, also where it arrives with HTTP 200."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

BROKEN: Final = 500
"""Lowest status of a server that cannot answer."""
DEPTH: Final = 4
"""Most errors within each other that are read."""
_WORDS = ("message", "msg", "detail", "error_msg", "errmsg", "error_message", "errorMessage", "status_msg")
_NAMES = ("code", "status", "type", "error_code", "status_code")
_INSIDE = ("error", "base_resp", "errors")
_KINDS = {
    429: re.compile(r"rate.?limit|too.?many.?req|throttl|resource.?exhausted|exceeded.?\w*quota", re.IGNORECASE),
    529: re.compile(r"overload", re.IGNORECASE),
    401: re.compile(r"auth|permission|api.?key|forbidden", re.IGNORECASE),
    404: re.compile(r"not.?found", re.IGNORECASE),
    400: re.compile(
        r"invalid|bad.?request|unsupported|context.?length|too.?(?:large|long)|polic|moderat|filter", re.IGNORECASE
    ),
}
"""Status of an error that names its kind alone."""


def error_in(body: Any) -> Any:
    """Error that a decoded body states, for the functions below; None if it states none."""
    found = body[0] if isinstance(body, list) and body else body
    if not isinstance(found, Mapping):
        return None
    first, filtered = _first(found.get("choices")), found.get("prompt_feedback") or found.get("promptFeedback")
    told = first.get("message")
    for error in (found.get("error"), first.get("error"), told.get("error") if isinstance(told, Mapping) else None):
        if error:
            return error if isinstance(error, Mapping | list) or not _said({**found, "error": None}) else found
    if first:
        return None
    if filtered:
        return {"message": f"the prompt is blocked: {filtered}", "type": "filter"}
    return found if _said(found) else None


def words_of(error: Any) -> str:
    """Reason that an endpoint gives, with that of the provider behind it; the error itself if it gives none."""
    return _said(error) or f"{error or ''}"


def _said(error: Any, depth: int = DEPTH) -> str:
    if isinstance(error, str):
        made = _decoded(error) if depth else None
        return _said(made, depth - 1) if made is not None else error
    if not depth:
        return ""
    if isinstance(error, list):
        return "; ".join(said for each in error[:DEPTH] if (said := _said(each, depth - 1)))
    if not isinstance(error, Mapping):
        return ""
    said = next((words for name in (*_WORDS, *_INSIDE) if (words := _said(error.get(name), depth - 1))), "")
    more = error.get("metadata")
    behind = more.get("raw") if isinstance(more, Mapping) else None
    return f"{said}: {behind}" if behind else said


def names_of(error: Any, depth: int = DEPTH) -> list[str]:
    """Code, kind and status of an error, as far as it names them."""
    if not depth:
        return []
    if isinstance(error, str):
        return names_of(made, depth - 1) if (made := _decoded(error)) is not None else []
    if isinstance(error, list):
        return [name for each in error[:DEPTH] for name in names_of(each, depth - 1)]
    if not isinstance(error, Mapping):
        return []
    own = [f"{error[name]}" for name in _NAMES if isinstance(error.get(name), str | int)]
    kind = error.get("error")
    own += [kind] if isinstance(kind, str) and _decoded(kind) is None else []
    inside = [name for at in (*_INSIDE, "message", "detail") for name in names_of(error.get(at), depth - 1)]
    return [*own, *inside]


def status_in(error: Any) -> int:
    """Status of an error in a body that arrived with 200; 500 if it names none."""
    for name in names_of(error):
        if name.isdecimal() and len(name) <= 9 and 300 <= int(name) < 600:
            return int(name)
        for status, kind in _KINDS.items():
            if kind.search(name):
                return status
    return next((status for status in (429, 529) if _KINDS[status].search(words_of(error))), BROKEN)


def _first(choices: Any) -> Mapping[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _decoded(text: str) -> Any:
    """An error that is written as text within another one."""
    try:
        made = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, Mapping | list) else None
