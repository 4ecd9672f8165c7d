"""The base of every configuration class: frozen, strict, documented field by field."""

from pathlib import Path
from typing import Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from coevo.configs.trust import is_stored

# Upper bounds of numbers, far beyond any run: a typing error is refused instead of computed.
FEW = 1024
"""Number of processes, devices or servers."""
ROWS = 2**17
"""Number of episodes or tasks at a time."""
MANY = 10**9
"""Number of iterations, steps or entries of a bank."""
TOKENS = 2**24
"""Number of tokens of a sequence or a batch."""
SECONDS = 10**7
"""Time limits in seconds: 116 days."""
SEED = 2**63 - 1
FACTOR = 10**6
"""Weights, thresholds and other real numbers."""
TEXT = 4096
"""Characters of a path, an address or a name."""


class Config(BaseModel):
    """Immutable settings with a docstring per field; an unknown key or a non-finite number is an error."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
        str_max_length=TEXT,
    )


def from_anywhere(path: str | None, info: ValidationInfo[Any]) -> str | None:
    """Make a path that exists absolute; what a stored run has, and a name that is no path, stays as it is."""
    there = Path(path).expanduser() if path is not None and not is_stored(info) else None
    return str(there.absolute()) if there is not None and there.exists() else path


FromAnywhere = AfterValidator(from_anywhere)
"""Mark of a path in its ``Annotated``, for a run that continues elsewhere."""
