"""Text from outside made inert: whatever an environment, a writer or a file says is data, and no tokenizer obeys it.

Two kinds of control tokens are known: those that chat templates commonly use (``COMMON``), whatever tokenizer will read
the text later, and those of one tokenizer. Both are also found where letter case, compatibility forms (``＜eos＞``) or
invisible characters hide them, since a tokenizer's own normalisation may remove what hides them.
"""

import re
import unicodedata
from collections.abc import Iterable

_COMMON = (
    r"<[|\uff5c][^<>\s]{0,64}[|\uff5c]>|</?s>|</?(?:think|tool_call|tool_response)>|</?(?:start|end)_of_turn>"
    r"|\[/?INST\]|<</?SYS>>|<(?:bos|eos|pad|unk|mask)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]"
)


COMMON = re.compile(_COMMON, re.IGNORECASE)
"""Control tokens of widespread chat templates."""


def control_tokens(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern of exactly these, such as the control tokens of one tokenizer."""
    longest_first = sorted({text for text in texts if text.strip()}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.IGNORECASE)


def whole_words(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern of exactly these between blanks: to a word-level tokenizer each of its words is a token."""
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, words))})(?!\S)", re.IGNORECASE)


def either(one: re.Pattern[str], other: re.Pattern[str]) -> re.Pattern[str]:
    """What matches one of two patterns."""
    return re.compile(f"{one.pattern}|{other.pattern}", re.IGNORECASE)


def inert(text: str, control: re.Pattern[str] = COMMON) -> str:
    """Text with a blank for each control token, without invisible characters; plain text comes back unchanged.

    It is searched until nothing is found: what is left on either side of a token may make another one.
    """
    text = text if text.isprintable() else "".join(map(_visible, text))
    while (found := _without(text, control)) != text:
        text = found
    return text


def flaw(text: str) -> str | None:
    """What keeps a line of text from being inert, in a few words; None where nothing does."""
    hidden = next((character for character in text if _is_control(character)), None)
    if hidden is not None:
        return f"holds the control character U+{ord(hidden):04X}"
    token = COMMON.search(text) or COMMON.search(unicodedata.normalize("NFKC", text))
    return f"holds the control token {ascii(token[0])[1:-1]}" if token else None


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
