"""Inert text, for word-level tokenizers: they have one token for a control token and for the word.

All text from an environment, a writer or a file is data. Prompts of other policies encode it so that no control token
in it acts, and leave it as it was written (``models.policy.encoding``). Here control tokens are removed: those that
chat templates commonly use (``COMMON``), and those of one tokenizer. Both are also found in any letter case, in
compatibility forms (``＜eos＞``) or among invisible characters, since a tokenizer's own normalisation may undo them.
"""

import re
import unicodedata
from collections.abc import Iterable

_COMMON = (
    r"<[|\uff5c][^<>\s]{0,64}[|\uff5c]>|</?s>|</?(?:think|tool_call|tool_response)>|</?(?:start|end)_of_turn>"
    r"|\[/?INST\]|<</?SYS>>|<(?:bos|eos|pad|unk|mask)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]"
)


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
    """Replace each control token with a blank and drop invisible characters; plain text comes back unchanged.

    The search repeats until nothing is found, since the text on both sides of a removed token may form another one.
    """
    text = visible(text)
    while (found := _without(text, control)) != text:
        text = found
    return text


def visible(text: str) -> str:
    """Drop invisible characters, except line breaks and tabs; visible text comes back unchanged."""
    return text if text.isprintable() else "".join(map(_visible, text))


def flaw(text: str) -> str | None:
    """Reason why a line of text cannot stand in the bank, in a few words; None if it can.

    Control tokens may: a lesson about HTML or code quotes them, and a prompt keeps them from acting.
    """
    hidden = next((character for character in text if _is_control(character)), None)
    return None if hidden is None else f"holds the control character U+{ord(hidden):04X}"


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


def _visible(character: str) -> str:
    # Format characters (zero-width, bidirectional) hide a token from the pattern; surrogates are not encodable at all.
    if character in "\n\t":
        return character
    return " " if character.isspace() else "" if _is_control(character) else character


def _is_control(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"
