"""Chat templates: programs that come with a tokenizer. They run in jinja's sandbox and within bounds."""

from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from configs.errors import CoevoError
from models.tokenizer import TEMPLATE

SECONDS = 20.0
"""Longest time for one prompt: a template takes a millisecond, so more is a loop without end."""
LONGEST = 4 * 2**20
"""Most characters of a prompt."""


def render(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str:
    """The prompt that a tokenizer's template makes of messages.

    Raises:
        CoevoError: the template fails, does not end, or writes without measure.
    """
    if tokenizer.chat_template == TEMPLATE:
        return _rendered(tokenizer, messages)
    answer: SimpleQueue[str | Exception] = SimpleQueue()
    # A thread of its own, which need not end: nothing stops a loop in Python from outside it.
    Thread(target=_answer, args=(tokenizer, messages, answer), daemon=True).start()
    try:
        text = answer.get(timeout=SECONDS)
    except Empty:
        raise _refused(f"does not end within {SECONDS:g} s") from None
    if isinstance(text, Exception):
        raise _refused(f"{type(text).__name__}: {' '.join(str(text).split())[:160]}")
    if len(text) > LONGEST:
        raise _refused(f"writes {len(text)} characters")
    return text


def _answer(tokenizer: Any, messages: Sequence[Mapping[str, str]], answer: "SimpleQueue[str | Exception]") -> None:
    try:
        answer.put(_rendered(tokenizer, messages))
    except Exception as error:  # noqa: BLE001  (a template may raise whatever Python can)
        answer.put(error)


def _rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str:
    text: str = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text


def _refused(said: str) -> CoevoError:
    return CoevoError(f"the tokenizer's chat template cannot be used: {said}; name a model with another template")
