"""Failures of requests to an endpoint: what an error means for the questions that follow."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from openai import APIStatusError

from coevo.records.stated_error import BROKEN, names_of, words_of

OVERLOADED: Final = 529
"""Status of an endpoint with too many requests for it, whoever sends them."""
TRANSIENT = (408, 409, 425)
"""Status below ``BROKEN`` of a request that may be sent again."""
PERMANENT = (401, 402, 403, 404, 405, 406, 407, 410, 411, 415, 426, 451, 501, 505, 511)
"""Status that every other question would have too."""
REFUSED = (400, 422)
"""Status of a request that is refused for what it holds: this question, or a setting that all have."""
_QUOTA = re.compile(
    r"billing|payment_required|insufficient_?(?:quota|balance|credits|funds)|exceeded_current_quota|arrearage|overdue",
    re.IGNORECASE,
)
_SPENT = re.compile(
    r"\bcurrent quota\b|\bspending limit|\bcheck your (?:plan|billing)|\b(?:credit|account) balance"
    r"|insufficient balance|\b(?:no|used|out of|exhausted|insufficient|not enough)\b.{0,40}?\b(?:credits?|funds)\b",
    re.IGNORECASE,
)
"""Words of a limit that stays until somebody pays, if nothing beside them says that it passes."""
_PASSES = re.compile(r"per.?(?:second|minute|min\b|hour)|\b[rt]p[mhs]\b|concurren", re.IGNORECASE)
"""Words of a limit that passes by itself."""
_RATE = re.compile(r"rate.?limit|too.?many.?requests|throttl", re.IGNORECASE)
_BUSY = re.compile(
    rf"{_RATE.pattern}|overload|too busy|(?:server|service|engine|currently|is) busy|slow.?down|too many"
    r"|\b(?:at|over|no|insufficient|exceed\w{0,3}) .{0,30}?\bcapacity|no (?:available |free )?slot"
    r"|\bmodel\b.{0,80}?\bloading\b|\bloading\b.{0,40}?\bmodel\b",
    re.IGNORECASE,
)
"""Words of an endpoint that is there and has too much to do."""
_TOO_LARGE = re.compile(r"request (?:is )?too large|tokens must be reduced", re.IGNORECASE)
"""Words of a limit that one request alone is beyond, whenever it is sent."""
_GONE = (
    r"not found|(?:(?:does|do|did) )?not exists?|doesn.t exist|is not a valid"
    r"|(?:is|was) (?:not|no longer) (?:available|supported)"
    r"|(?:has been|is|was) (?:decommissioned|deprecated|retired|removed)"
)
_OF_ALL = re.compile(
    r"model_(?:not_(?:found|supported)|decommissioned|deprecated|terms_required)"
    r"|(?:unsupported|unknown|unrecognized)_(?:parameter|value|argument)|extra_forbidden|invalid_api_key"
    r"|\b(?:unsupported|unknown|unrecognized) (?:request )?(?:parameter|argument|field|value:)"
    r"|\bapi.?key (?:is |was )?(?:not valid|invalid|expired)|\b(?:invalid|incorrect|missing) api.?key"
    r"|\b(?:credit )?balance is (?:too low|insufficient)|extra inputs are not permitted"
    r"|\b(?:no such|unknown|invalid|unsupported|no|not a valid|unrecognized) model\b|\blocation is not supported"
    r"|\b(?:unable to|cannot|can.t|could not|failed to) (?:access|find|load|locate|open) (?:the |this )?model\b"
    r"|\bmodel (?:identifier|id|name)\b.{0,120}?\b(?:invalid|unknown|unrecognized|not recognized)"
    rf"|\bmodel\b.{{0,120}}?\b(?:{_GONE})",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a refusal of a model or of a setting, which all requests have."""


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
        unread: True if an answer came that is no chat completion.
        silent: True if the model's answer came and has no text: it refuses, a filter withheld it, or it only thought.
        unsure: True if nothing came, though the endpoint may have received the request, and charge for it.
    """

    fault: str
    after: After
    pause: float = 0.0
    dead: bool = False
    prompt_tokens: int = 0
    answer_tokens: int = 0
    unread: bool = False
    silent: bool = False
    unsure: bool = False


def after(status: int, error: object, pause: float = 0.0) -> After:
    """Consequence of an error with a status.

    Args:
        status: of HTTP, also where the endpoint says it in a body that arrives with 200.
        error: content of the error.
        pause: seconds that the endpoint asks for.
    """
    said = f"{error}"
    if _QUOTA.search(" ".join(names_of(error))):
        return After.STOP
    if _limits(status, said, pause):
        return _after_limit(said, pause)
    if status in PERMANENT or status // 100 == 3 or (status in REFUSED and _OF_ALL.search(said)):
        return After.STOP
    return After.AGAIN if status >= BROKEN or status in TRANSIENT else After.NEXT


def _limits(status: int, said: str, pause: float) -> bool:
    """Report whether an endpoint takes requests, but not so many."""
    if status == 503:
        return pause > 0 or _BUSY.search(said) is not None
    return status in (429, OVERLOADED) or (status == 403 and _RATE.search(said) is not None)


def _after_limit(said: str, pause: float) -> After:
    if _TOO_LARGE.search(said):
        return After.NEXT
    spent = _SPENT.search(said) and not (pause or _PASSES.search(said))
    return After.STOP if spent else After.WAIT


def message(error: APIStatusError) -> str:
    """Reason of a status."""
    return words_of(error.body) or str(error.response.reason_phrase)
