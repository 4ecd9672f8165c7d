"""The base of every configuration class: frozen, strict, documented field by field."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Immutable settings; an unknown key is an error, and a docstring under a field is its description."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, validate_default=True
    )
