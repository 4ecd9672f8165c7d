"""Checks of a model's text before it may become part of an entry.

They are filters, not proof: replay decides what a lesson is worth. Each refusal has one of ``REASONS``.
"""

import re
import unicodedata
from collections.abc import Iterable

from coevo.memory.text import content_words
from coevo.records.inert import COMMON, either, flaw, inert

REASONS = {
    "not_json": "the answer has no JSON object of the expected form",
    "not_words": "the answer in words has another form",
    "cut": "the answer ended within this item, or before it",
    "shape": "a field is missing or has another type",
    "unknown": "it names an attempt, a step or an entry that the question does not show",
    "empty": "it has no words",
    "long": "it has too many characters",
    "control": "it has a control token of a chat template, or a control character",
    "script": "it is written in another script than the attempts",
    "ungrounded": "it shares no word with the attempts",
    "injection": "it addresses the reader as instructions to a model do",
}
"""Reasons to refuse an item."""

_THINKING = re.compile(r"</?(?:think|thinking|thought|reasoning|seed:think)>|\[/?THINK\]|◁/?think▷")
"""Marks of ``models.answers.thinking``: behind one of them, a policy's answer would be no action."""
_CONTROL = either(COMMON, _THINKING)
_INJECTION = re.compile(
    r"(?<!\bnot )(?<!\bnever )\b(?:ignore|disregard|forget|override|bypass)\b"
    r".{0,40}\b(?:previous|prior|above|earlier|all|any|your|these|the)\b"
    r".{0,40}\b(?:instructions?|prompts?|rules?|messages?|guidelines?)\b"
    r"|\b(?:system|developer)\s+(?:prompt|message|instructions?)\b"
    r"|\byou\s+are\s+(?:now|no\s+longer)\s+an?\b|\bnew\s+instructions?\b"
    r"|(?:^|\s)(?:system|assistant|developer)\s*:|https?://",
    re.IGNORECASE,
)
SHARE = 0.8
"""Least share of a text's letters that belong to scripts of the attempts."""


def refusal(text: object, most: int) -> str | None:
    """Reason to refuse a text on its own account; None if there is none."""
    if not isinstance(text, str):
        return "shape"
    line = " ".join(text.split())
    if len(line) > most:
        return "long"
    if flaw(line) or inert(line, _CONTROL) != line:
        return "control"
    return "injection" if _INJECTION.search(line) else None


def foreign(text: str, words: frozenset[str]) -> str | None:
    """Reason to refuse a lesson beside the words of the attempts that taught it; None if there is none."""
    said = content_words(text)
    if not said:
        return "empty"
    if reason := strange(text, words):
        return reason
    return None if words.intersection(said) or _pairs(said) & _pairs(words) else "ungrounded"


def strange(text: str, words: frozenset[str]) -> str | None:
    """Reason to refuse a text that is written in another script than the attempts; None if it is not."""
    letters, known = [letter for letter in text if letter.isalpha()], scripts(words)
    return "script" if known and sum(script(letter) in known for letter in letters) < SHARE * len(letters) else None


def scripts(words: Iterable[str]) -> set[str]:
    """Scripts of the letters of words."""
    return {script(letter) for letter in set("".join(words)) if letter.isalpha()}


def script(letter: str) -> str:
    """Script of a letter, as the first word of its Unicode name gives it."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _pairs(words: Iterable[str]) -> set[str]:
    """Pairs of neighbouring characters outside ASCII: scripts without blanks have no other words."""
    both = (word[place : place + 2] for word in words if not word.isascii() for place in range(len(word) - 1))
    return {pair for pair in both if not pair.isascii()}
