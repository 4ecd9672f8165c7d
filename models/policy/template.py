"""Chat templates: programs that come with a tokenizer. They run in jinja's sandbox and within limits."""

from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import Any

from coevo.models.answers.call_tools import wrapped
from coevo.models.policy.bounded_trial import try_out
from coevo.models.policy.tokenizers import MARKED, TEMPLATE
from coevo.utilities.errors import CoevoError

OWN = (TEMPLATE, MARKED)
"""Templates of coevo itself."""
RENDER_TIMEOUT_S = 20.0
"""Maximum seconds for one prompt: a template takes a millisecond, so a longer one is an endless loop."""
MAX_PROMPT_CHARS = 4 * 2**20
"""Maximum characters of a prompt."""
DAY = {"d": "26", "b": "Jul", "B": "July", "m": "07", "y": "24", "Y": "2024", "A": "Friday", "a": "Fri", "j": "208"}
"""Date that templates get as today's, by the letters of strftime: prompts are equal tomorrow, and after a resume."""
_DATED = (
    "{% macro strftime_now(format) %}{{ format"
    + "".join(f" | replace('%{letter}', '{text}')" for letter, text in {**DAY, "H": "00", "M": "00", "S": "00"}.items())
    + " }}{% endmacro %}\n"
)
"""Beginning of each template: its own definition of the function takes the place of the library's."""


def render(
    tokenizer: Any,
    messages: Sequence[Mapping[str, str]],
    options: Mapping[str, Any] = MappingProxyType({}),
    tools: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Render messages by a tokenizer's template, up to the beginning of the next answer.

    Args:
        tokenizer: tokenizer that has the template.
        messages: role and content of each.
        options: values that the template may use, such as ``enable_thinking``.
        tools: JSON schemas of the functions that the template declares, also without the object around a function.

    Raises:
        CoevoError: the template fails, does not end, or exceeds the limits of memory or length.
    """
    if tokenizer.chat_template in OWN:
        own: str = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return own
    declared = [wrapped(tool) for tool in tools] or None
    given = {**options, "tools": declared, "chat_template": _checked(tokenizer, options, declared)}
    answer: SimpleQueue[str | Exception] = SimpleQueue()
    # A separate thread, which need not end: nothing outside stops a loop in Python.
    Thread(target=_answer, args=(tokenizer, messages, given, answer), daemon=True).start()
    try:
        text = answer.get(timeout=RENDER_TIMEOUT_S)
    except Empty:
        raise refused(f"does not end within {RENDER_TIMEOUT_S:g} s") from None
    if isinstance(text, Exception):
        raise refused(f"{type(text).__name__}: {' '.join(str(text).split())[:160]}")
    if len(text) > MAX_PROMPT_CHARS:
        raise refused(f"writes {len(text)} characters")
    return text


def _checked(tokenizer: Any, options: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Source of the template, tried in a bounded process before it is rendered in this one."""
    try:
        source = _DATED + str(tokenizer.get_chat_template(tools=tools))
    except ValueError as error:
        raise refused(" ".join(str(error).split())[:160]) from None
    fault = try_out(source, {**tokenizer.special_tokens_map, **options}, RENDER_TIMEOUT_S)
    if fault is not None:
        raise refused(fault)
    return source


def _answer(
    tokenizer: Any,
    messages: Sequence[Mapping[str, str]],
    given: Mapping[str, Any],
    answer: "SimpleQueue[str | Exception]",
) -> None:
    try:
        answer.put(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **given))
    except Exception as error:  # noqa: BLE001  (a template may raise whatever Python can)
        answer.put(error)


def refused(said: str, remedy: str = "name a model with another template") -> CoevoError:
    """Error for a template that cannot be used, with reason and remedy."""
    return CoevoError(f"the tokenizer's chat template cannot be used: {said}; {remedy}")
