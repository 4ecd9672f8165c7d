"""The base of every configuration class: frozen, strict, documented field by field."""

import unicodedata
from pathlib import Path
from typing import Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from coevo.configs.trust_settings import is_stored

# Upper bounds of numbers, far beyond any run: a typing error is refused instead of computed.
MAX_PROCESSES = 1024
"""Number of processes, devices or servers."""
MAX_ROWS = 2**17
"""Number of episodes or tasks at a time."""
MAX_COUNT = 10**9
"""Number of iterations, steps or entries of a bank."""
MAX_TOKENS = 2**24
"""Number of tokens of a sequence or a batch."""
MAX_SECONDS = 10**7
"""Time limits in seconds: 116 days."""
MAX_SEED = 2**63 - 1
MAX_TURNS = 50
"""Maximum turns of an episode in an environment without a limit of its own."""
MAX_FACTOR = 10**6
"""Weights, thresholds and other real numbers."""
TEXT = 4096
"""Characters of a path, an address or a name."""
NAME = 300
"""Characters of a name of a recipe, a metric or a panel."""
IN_NAMES = frozenset(" .:,;+-_()[]@=%#~!*^$")
"""Characters of names besides letters, digits and their marks."""


class Config(BaseModel):
    """Immutable settings with a docstring per field; an unknown key or a non-finite number is an error."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        validate_default=True,
        allow_inf_nan=False,
        str_max_length=TEXT,
        defer_build=True,
    )


def from_anywhere(path: str | None, info: ValidationInfo[Any]) -> str | None:
    """Make a path that exists absolute; what a stored run has, and a name that is no path, stays as it is."""
    there = Path(path).expanduser() if path is not None and not is_stored(info) else None
    return str(there.absolute()) if there is not None and there.exists() else path


FromAnywhere = AfterValidator(from_anywhere)
"""Mark of a path in its ``Annotated``, for a run that continues elsewhere."""


def is_name(text: str) -> bool:
    """Return True for a name that is safe to print, to show on a page and to use as one part of a path.

    It has letters and digits of any script and ``IN_NAMES``: no control or invisible character, no character that
    changes the direction of the text or has a meaning in HTML, no slash, and no ``..``.
    """
    if not 0 < len(text) <= NAME or text.startswith(".") or ".." in text or text != text.strip():
        return False
    return all(one.isalnum() or one in IN_NAMES or unicodedata.category(one).startswith("M") for one in text)


def named(text: str) -> str:
    """Require a name, see ``is_name``. Raises ``ValueError``."""
    if not is_name(text):
        raise ValueError(f"{text[:100]!a} is no name: use letters, digits, '.', '_' and '-'")
    return text
