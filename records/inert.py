"""Inert text, for word-level tokenizers: they have one token for a control token and for the word.

All text from an environment, a writer or a file is data. Prompts of other policies encode it so that no control token
in it acts, and leave it as it was written (``models.policy.encoding``). Here control tokens are removed: those that
chat templates commonly use (``COMMON``), and those of one tokenizer. Both are also found in any letter case, in
compatibility forms (``＜eos＞``) or among invisible characters, since a tokenizer's own normalisation may undo them.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

_COMMON = (
    r"<[|\uff5c][^<>\s]{0,64}[|\uff5c]>|</?s>|</?(?:think|tool_call|tool_response)>|</?(?:start|end)_of_turn>"
    r"|\[/?INST\]|<</?SYS>>|<(?:bos|eos|pad|unk|mask)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]"
)

_LETTER = r"[[\p{L}\p{M}]--[\p{Latin}\p{Common}\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe2f]]"
"""Letter or mark of a script whose spelling may need a joiner behind it; no part of a control token."""
_EMOJI = r"[\p{Extended_Pictographic}--[\u2122\u2139]][\ufe0f\U0001f3fb-\U0001f3ff]*"
_FLAGS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
_ACTS = rf"""(?: (?<={_LETTER})[\u200c\u200d]
           | (?<=[\p{{Line_Break=Complex_Context}}--\p{{Common}}])\u200b | (?<=\p{{Mongolian}})\u180e
           | (?<={_EMOJI})\u200d(?=\p{{Extended_Pictographic}})
           | \U0001f3f4(?:{_FLAGS})\U000e007f )(*SKIP)(*FAIL)
    | [\p{{Cf}}--[\p{{Prepended_Concatenation_Mark}}\U00013430-\U0001343f]]
    | [\p{{Cc}}\p{{Cs}}\p{{Co}}\p{{Zl}}\p{{Zp}}\p{{Noncharacter_Code_Point}}]
    | [\p{{Cn}}&&\p{{Default_Ignorable_Code_Point}}]"""
"""Character that acts on a terminal or on the order of a text, or hides what stands beside it."""
_HIDDEN = rf"{_ACTS}|[\p{{Zs}}--\x20]"
"""Such a character, or a blank of another width."""


COMMON = re.compile(_COMMON, re.IGNORECASE)
"""Control tokens of common chat templates."""


def control_tokens(texts: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern that matches exactly these texts, such as the control tokens of one tokenizer."""
    longest_first = sorted({text for text in texts if text.strip()}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.IGNORECASE)


def whole_words(words: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of exactly these words between blanks: a word-level tokenizer maps each word to one token."""
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, words))})(?!\S)", re.IGNORECASE)


def either(one: re.Pattern[str], other: re.Pattern[str]) -> re.Pattern[str]:
    """Combine two patterns: match one or the other."""
    return re.compile(f"{one.pattern}|{other.pattern}", re.IGNORECASE)


def inert(text: str, control: re.Pattern[str] = COMMON) -> str:
    """Replace each control token with a blank and drop what ``visible`` drops; plain text comes back unchanged.

    The search repeats until nothing is found, since the text on both sides of a removed token may form another one.
    """
    text = visible(text)
    while (found := _without(text, control)) != text:
        text = found
    return text


def visible(text: str) -> str:
    """Drop what acts or hides, except line breaks and tabs; text that is only read comes back unchanged.

    These are control characters, bidirectional controls, halves of characters, characters of private use, and invisible
    characters that join nothing. Joiners stay behind letters of the scripts that need them and within emoji, and so do
    marks between words of scripts without blanks. Characters that are newer than Python's tables stay too.
    """
    return text if text.isprintable() else _pattern(_HIDDEN).sub(_seen, text)


def shown(text: str) -> str:
    """Text on one line, with a blank in place of each character that ``visible`` drops."""
    return text if text.isprintable() else _pattern(_HIDDEN).sub(" ", text)


def marked(text: str) -> str:
    """Text in which each character that acts or hides is a visible mark, ``⟨U+202E⟩``; line breaks and tabs stay."""
    return text if text.isprintable() else _pattern(_ACTS).sub(_mark, text)


def flaw(text: str) -> str | None:
    """Reason why a line of text cannot stand in the bank, in a few words; None if it can.

    Control tokens may: a lesson about HTML or code quotes them, and a prompt keeps them from acting.
    """
    found = None if text.isprintable() else _pattern(_ACTS).search(text)
    return None if found is None else f"holds the control character U+{ord(found[0]):04X}"


def encodable(text: str) -> str:
    """Text in which halves of surrogate pairs, which have no encoding, are question marks."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _without(text: str, control: re.Pattern[str]) -> str:
    text = control.sub(" ", text)
    if text.isascii():
        return text
    folded = [unicodedata.normalize("NFKC", character) for character in text]
    origin = [index for index, form in enumerate(folded) for _ in form]
    # Only what was found is replaced: folding the rest could turn it into a quotation mark that closes a quote.
    left = list(text)
    for found in control.finditer("".join(folded)):
        first, last = origin[found.start()], origin[found.end() - 1]
        left[first : last + 1] = [" ", *[""] * (last - first)]
    return "".join(left)


def _seen(found: Any) -> str:
    character = found[0]
    return character if character in "\n\t" else " " if character.isspace() else ""


def _mark(found: Any) -> str:
    return found[0] if found[0] in "\n\t" else "".join(f"⟨U+{ord(character):04X}⟩" for character in found[0])


@cache
def _pattern(text: str) -> Any:
    import regex  # most commands meet no such character

    return regex.compile(text, regex.V1 | regex.VERBOSE)
