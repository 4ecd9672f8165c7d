"""Lines of a text: most tokenizers encode each by itself, so a line that several prompts hold is encoded once.

A text is divided between a line break and the text around it, never at blanks. That is exact for a tokenizer whose
pre-tokenizer ends a piece at each such place, since no token spans two pieces; ``divides`` tries it.
"""

from itertools import product

from tokenizers import Tokenizer
from tokenizers.normalizers import NFC

SHORT = 256
"""Maximum characters of a text that is encoded in one piece."""
_BESIDE = "aZé世عह1.,:;!?)(]}>\"'`-_*#$|\\/=+&%@^~<{[😀"
"""Characters before and after a line break with which a tokenizer is tried: letters, numbers, marks."""


def divides(tokenizer: Tokenizer) -> bool:
    """Report whether a tokenizer encodes the lines of ``lines_of`` by themselves."""
    if tokenizer.pre_tokenizer is None or not isinstance(tokenizer.normalizer, NFC | None):
        return False
    return all(_pieces(tokenizer, f"x{a}\n", f"{b}y\n") for a, b in product(_BESIDE, repeat=2))


def lines_of(text: str) -> list[str]:
    """Divide a text before each line that begins with no blank and follows one that ends with none."""
    first, *others = text.split("\n")
    found = [first]
    for line in others:
        if _is_dark(line[:1]) and _is_dark(found[-1][-1:]):
            found[-1] += "\n"
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    return found


def _pieces(tokenizer: Tokenizer, *lines: str) -> bool:
    split = tokenizer.pre_tokenizer.pre_tokenize_str
    alone = [piece for line in lines for piece, _ in split(line)]
    return [piece for piece, _ in split("".join(lines))] == alone


def _is_dark(character: str) -> bool:
    """True for a character that is neither a blank nor a control character."""
    return character.isprintable() and bool(character.strip())
