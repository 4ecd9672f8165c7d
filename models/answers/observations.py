"""Observations that an answer invents, and the ends of its turn: what follows them is no part of the answer."""

import re

from coevo.models.answers.spans import QUOTED, Whole

_KINDS = (
    r"results?|feedback|output|response|environment|you observed?|tool (?:output|result|response)|human|user|agent"
    r"|system"
)
_BEFORE = r"(?:(?:new|next|the|current|updated|latest|environment|env|game|action|command|execution)[ \t]+){0,3}"
_BEHIND = (
    r"(?:[ \t]+(?:of|from|after)[ \t]+(?:(?:the|my|your|this|last|previous)[ \t]+){0,2}"
    r"(?:action|call|command|tool|environment))?[ \t]{0,4}\d{0,4}"
)
_LABEL = rf"{_BEFORE}(?:observations?|obs|{_KINDS}){_BEHIND}"
_TAG = r"<(?:(?:new_)?observations?|obs|(?:tool|function|env|environment|execution)_(?:results?|outputs?|feedback))>"
_RARE_TAG = r"<(?:results?|output|response|feedback|environment|env|user|human|system)>"
"""Tags that HTML or data may hold as well: they count at the beginning of a line or behind an action alone."""
_INVENTED = re.compile(
    rf"^(?!--[ \t])[ \t>#*_\-]*{_LABEL}[*_ \t]{{0,8}}[:：]"
    rf"|^[ \t>#*_]*{_BEFORE}observations?{_BEHIND}[*_]{{0,4}}(?:[ \t]+[\-–—][ \t]|[ \t]*$)"
    rf"|^[ \t>]*(?:\#{{2,6}}[ \t]*[*_]{{0,4}}|[*_]{{2,4}}){_LABEL}[*_ \t]*$"
    rf"|^[ \t>#*_]*\[{_BEFORE}(?:observations?|obs|results?|feedback|environment){_BEHIND}\](?!\()"
    rf"|^[ \t]*{_TAG}|^{_RARE_TAG}",
    re.IGNORECASE | re.MULTILINE,
)
"""Beginning of a line that imitates the environment or the user, in each form that an action's label may have."""
_PAGE = re.compile(
    r"^[ \t>]*(?:You (?:arrive at|are (?:facing|in|carrying|not)|pick up|put|place|move|open|close|turn o(?:n|ff)"
    r"|heat|cool|clean|see|take|drop|have clicked)\b|On the [\w ]+, you see\b"
    r"|Nothing happens\b|Your (?:current )?observation\b)",
    re.MULTILINE,
)
"""Beginning of a line that imitates what a game says, without a label; it counts behind an action alone."""
_MARK = (
    r"(?<=[\s.!?;)\]>])(?<!\becho )[*_]{0,4}(?:Observations?|OBSERVATIONS?)[ \t]{0,4}\d{0,4}[*_]{0,4}[:：]"
    rf"|{_TAG}|(?<=</action>)[ \t]*{_RARE_TAG}"
)
_WITHIN = re.compile(_MARK)
_TOKEN = re.compile(rf"{QUOTED}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<mark>{_MARK})")
"""Marks within a line, and what shows that they are data: quotes and brackets around them."""
_TURN = re.compile(
    r"<\|(?:im_start|start_header_id|start_of_role|start)\|>(?!assistant)|<tool_response>|[<\[]\|endofturn\|[>\]]"
    r"|<\|(?:im_end|eot_id|user|system|observation|endoftext|eom_id|return|eos|role_end|end_of_turn_token)\|>"
    r"|(?-i:<\|end\|>)(?!\s*<\|start\|>assistant)|<\|end_?of_?(?:text|turn|response|box|solution)\|>|<\|end_response\|>|<end_of_utterance>"
    r"|</s>(?=\s*(?:\Z|<s>|\[INST\]))|^[ \t]*(?:</s>|\[/?INST\])|<(?:start|end)_of_turn>|<｜(?:User|end▁of▁sentence)｜>"
    r"|\[TOOL_RESULTS\]|<｜tool▁outputs?▁begin｜>|✿RESULT✿",
    re.IGNORECASE | re.MULTILINE,
)
"""Role markers and ends of turns in chat templates; within a line, ``</s>`` and ``[INST]`` may be HTML or data."""


def turn_end(text: str, whole: Whole) -> int:
    """Position of the first role marker or end of a turn; the length of the text without one."""
    return _first(text, _TURN, 0, len(text), whole)


def invented(text: str, after: int, whole: Whole, stop: int | None = None) -> int:
    """Position of the first invented observation behind an action; ``stop`` without one.

    Before the first action, a label such as ``Observation:`` repeats what the agent has seen. Within a line, such a
    label counts in the line of the action alone: elsewhere, it is part of a sentence.

    Args:
        text: answer without thinking and without further turns.
        after: end of the first complete action.
        whole: parts that are read whole.
        stop: end of the search; the length of the text if None.
    """
    stop = len(text) if stop is None else stop
    line_end = text.find("\n", after, stop)
    within = _within(text, after, stop if line_end < 0 else line_end, whole)
    if within < (stop if line_end < 0 else line_end):
        return within
    return min(_first(text, each, after, stop, whole) for each in (_INVENTED, _PAGE))


def observed(text: str, start: int, stop: int, whole: Whole) -> int:
    """Position of the first invented observation in the text of an action; ``stop`` without one."""
    return min(_within(text, start, stop, whole), _first(text, _INVENTED, start, stop, whole))


def _first(text: str, pattern: re.Pattern[str], start: int, stop: int, whole: Whole) -> int:
    starts = (mark.start() for mark in pattern.finditer(text, start, stop))
    return next((start for start in starts if start not in whole), stop)


def _within(text: str, start: int, stop: int, whole: Whole) -> int:
    """Position of the first mark outside of quotes and brackets; ``stop`` without one."""
    if _WITHIN.search(text, start, stop) is None:
        return stop
    depth = 0
    for token in _TOKEN.finditer(text, start, stop):
        if token["mark"] and depth <= 0 and token.start() not in whole:
            return token.start()
        depth += (token["open"] is not None) - (token["close"] is not None)
    return stop
