"""Environments: which one, and its settings. The union is told apart by ``type``."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, Tag

from configs.base import Config


class HomeRulesConfig(Config):
    """The embedded household whose houses hide conventions that only outcomes reveal."""

    type: Literal["homerules"] = "homerules"
    """Name of the environment."""
    level: Literal[1, 2] = 1
    """1: four families and four places (the demo); 2: six families and ten steps."""
    world: int = Field(default=0, ge=0)
    """Seed of the hidden conventions that are trained on and evaluated in."""
    houses: int = Field(default=16, ge=1, le=16)
    """Houses of the world that training tasks come from."""


class PluginEnvConfig(Config):
    """An environment from another package."""

    type: str = Field(pattern=r"^[A-Za-z_][\w.\-]*(:[A-Za-z_]\w*)?$")
    """Name registered under the entry-point group ``coevo.envs``, or ``package.module:Class``."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Keyword arguments of the environment's constructor."""


def _which(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "homerules" if kind == "homerules" else "plugin"


EnvConfig = Annotated[
    Annotated[HomeRulesConfig, Tag("homerules")] | Annotated[PluginEnvConfig, Tag("plugin")],
    Discriminator(_which),
]
