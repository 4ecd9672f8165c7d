"""The base of every configuration class: frozen, strict, documented field by field."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Immutable settings, described field by field; an unknown key or a number that is not finite is an error."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )
