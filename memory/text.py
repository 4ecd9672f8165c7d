"""Text of the world, made fit for the bank: it is data, one bounded line without anything a chat template reads."""

import re
import unicodedata

LONGEST = 240
"""Most characters of a field of an entry."""

_STOP_WORDS = """a an and are as at be by for from has have i if in into is it its me my of off on onto or out please so
    that the their them then there this to up was were will with you your"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of what an instruction is about."""

WORD = re.compile(r"\w+")

CONTROL_TOKENS = re.compile(
    r"<[|\uff5c].*?[|\uff5c]>|</?s>|</?(?:think|tool_call|tool_response)>|</?(?:start|end)_of_turn>|\[/?INST\]"
    r"|<</?SYS>>|<(?:bos|eos|pad|unk)>",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """One line of at most ``LONGEST`` characters, without control characters and chat-template control tokens."""
    visible = "".join(" " if character.isspace() else character for character in text if _visible(character))
    line = " ".join(CONTROL_TOKENS.sub(" ", visible).split())
    return line if len(line) <= LONGEST else line[: LONGEST + 1].rpartition(" ")[0][:LONGEST] or line[:LONGEST]


def words(text: str) -> list[str]:
    """Lower-case words in order, first occurrences only."""
    return list(dict.fromkeys(WORD.findall(text.lower())))


def content_words(text: str) -> list[str]:
    """``words`` without stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def _visible(character: str) -> bool:
    # Format characters (zero-width, bidirectional) could hide a control token from the pattern or text from a reader.
    return character.isspace() or unicodedata.category(character)[0] != "C"
