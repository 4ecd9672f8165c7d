r"""An API key in text that an endpoint sends back: as it is, escaped, or broken.

An echo may pass through JSON (``\u0073k``, ``\/``), an address (``%2F``), HTML (``&#x2F;``) or a repr, and a model may
break it into lines. An endpoint that wants to give the key away can still do so: it has it.
"""

import re

SECRET = 8
"""Minimum characters of a key that is hidden where it appears; a shorter one is a placeholder, such as ``EMPTY``."""
# Bounded and possessive: an endpoint must not be able to write text that takes more than linear time.
_BLANKS = r"[^!-~]{0,16}+"
"""White space and invisible characters, which may stand between two characters of a key."""
_BREAKS = r"(?:[^!-~]|\\{1,8}(?:[bfnrtv]|u(?!00[2-7])[0-9a-fA-F]{4})){0,16}+"
"""These, and their escapes."""


class Secret:
    """A key to be hidden.

    Args:
        key: the key; empty if there is none.
    """

    def __init__(self, key: str) -> None:
        self._echo = echo_of(key) if len(key) >= SECRET else None

    def hidden(self, text: str) -> str:
        """Text without the key."""
        return text if self._echo is None else self._echo.sub("***", text)


def echo_of(key: str) -> re.Pattern[str]:
    """Pattern of a key of printable ASCII characters in any form in which it may come back."""
    first, *others = re.findall(r"\\+|[^\\]", key)
    # In front of a backslash of the key, an escape could be that backslash.
    rest = [(_BLANKS if part.startswith("\\") else _BREAKS) + _forms(part) for part in others]
    return re.compile("".join([re.escape(key), "|", _forms(first), *rest]))


def _forms(part: str) -> str:
    """Pattern of a character, or of several backslashes, whose number an escape changes."""
    code, itself = f"{ord(part[0]):02x}", re.escape(part)
    if not part.isalnum():
        itself = r"\\{1,64}+" if part[0] == "\\" else rf"\\{{0,8}}{itself}"
    return rf"(?:{itself}|(?i:\\{{1,8}}(?:u00|x){code}|%(?:25){{0,2}}{code}|&\#(?:{ord(part[0])}|x{code});))"
