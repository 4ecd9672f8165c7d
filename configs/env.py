"""Environments and their settings. The ``type`` selects the environment."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, JsonValue, Tag, ValidationError

from coevo.configs.adapter_config import (
    FactoryConfig,
    GymnasiumConfig,
    InterpreterPath,
    McpConfig,
    OpenEnvConfig,
    VerifiersConfig,
)
from coevo.configs.base import MAX_COUNT, MAX_SEED, Config, FromAnywhere
from coevo.configs.benchmark_config import AppWorldConfig, Tau2Config
from coevo.configs.rows_config import RowsConfig
from coevo.configs.simulator_config import SimulatorConfig
from coevo.configs.trust_settings import Trusted
from coevo.utilities.errors import ConfigError


class _Options(Config):
    """Options of an embedded environment, which are also arguments of its constructor."""

    @classmethod
    def of(cls, **options: object) -> Self:
        """Check the arguments of a constructor.

        Raises:
            ConfigError: an option is out of its bounds.
        """
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            problem = error.errors()[0]
            raise ConfigError(f"env.{problem['loc'][0]} = {problem['input']!r}: {problem['msg']}") from None


class HomeRulesConfig(_Options):
    """The embedded household: its houses hide conventions that only outcomes reveal."""

    type: Literal["homerules"] = "homerules"
    """Name of the environment."""
    level: Literal[1, 2] = 1
    """1: four families and four places (the demo); 2: six families and ten steps."""
    world: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of the hidden conventions, for training and evaluation."""
    houses: int = Field(default=16, ge=1, le=16)
    """Houses of the world that training tasks come from."""
    extra_lessons: int = Field(default=0, ge=0, le=8, exclude_if=lambda extra: extra == 0)
    """Unrelated lessons added to expert material, for banks that are not queried by task."""
    drift: int | None = Field(default=None, ge=1, le=MAX_COUNT, exclude_if=lambda every: every is None)
    """Iterations after which one house, in turn, changes all its facts; null for a world that stays as it is."""


BabyAIKind = Literal["goto", "pickup", "open", "pick_up_seq_go_to", "putnext"]


class BabyAIConfig(_Options):
    """Rooms of BabyAI, described in words; needs the extra ``babyai``."""

    type: Literal["babyai"] = "babyai"
    """Name of the environment."""
    kinds: tuple[BabyAIKind, ...] = Field(default=("goto",), min_length=1, max_length=5)
    """Kinds of tasks, equally likely."""
    distractors: int = Field(default=8, ge=0, le=10)
    """Objects in a room that no instruction names: 8 in BabyAI-Text, 0 in BALROG."""
    steps: int | None = Field(default=None, ge=1, le=10_000)
    """Actions after which an episode is cut; null for 64 (goto, pickup) or 128. ``rollout.max_turns`` also cuts it."""


class BabyAIRulesConfig(_Options):
    """Towers of BabyAI rooms whose doors obey hidden customs; needs the extra ``babyai``."""

    type: Literal["babyai-rules"] = "babyai-rules"
    """Name of the environment."""
    world: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of the customs, for training and evaluation."""
    towers: int = Field(default=16, ge=1, le=32)
    """Towers of the world that tasks come from, each with a custom of its own."""
    steps: int = Field(default=16, ge=1, le=10_000)
    """Actions after which an episode is cut; the longest shortest plan has 12. ``rollout.max_turns`` also cuts it."""


class SokobanConfig(_Options):
    """Boxes that are pushed onto targets, on boards drawn by this project."""

    type: Literal["sokoban"] = "sokoban"
    """Name of the environment."""
    size: int = Field(default=6, ge=6, le=8)
    """Cells along a side of a board, walls included."""
    boxes: int = Field(default=2, ge=1, le=3)
    """Boxes of a board; the panel ``more-boxes`` has one more."""
    steps: int = Field(default=30, ge=10, le=200)
    """Actions after which an episode is cut; every board can be solved within them."""


class MineSweeperConfig(_Options):
    """Cells that are opened, on fields drawn by this project."""

    type: Literal["minesweeper"] = "minesweeper"
    """Name of the environment."""
    size: int = Field(default=6, ge=5, le=8)
    """Cells of a side."""
    mines: int = Field(default=3, ge=2, le=8)
    """Mines of a field; the panels ``one-more`` and ``two-more`` have more."""
    steps: int | None = Field(default=None, ge=1, le=200)
    """Actions after which an episode is cut; null for as many as there are cells."""
    fields: int | None = Field(default=None, ge=1, le=32)
    """Named fields that keep their mines, so that notes about them hold; null for a new field in every task."""
    world: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of the named fields."""

    @property
    def limit(self) -> int:
        """Actions after which an episode is cut."""
        return self.steps or self.size**2


class WebShopConfig(_Options):
    """A shop of text pages, with products of WebShop's files or of a catalogue made from a seed."""

    type: Literal["webshop"] = "webshop"
    """Name of the environment."""
    products: int = Field(default=1000, ge=100, le=200_000)
    """Products of the made catalogue."""
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of the made catalogue."""
    path: Annotated[str | None, Trusted("reads the products there"), FromAnywhere] = None
    """Folder of WebShop's files; null for the made catalogue."""
    nouns: Literal["words", "spacy"] = "words"
    """Nouns of a title: ``words``: all words but stop words, numbers and units; ``spacy``: spaCy's, as in WebShop."""
    steps: int = Field(default=15, ge=3, le=200)
    """Actions after which an episode is cut."""


EMBEDDED = SimulatorConfig()


class PluginEnvConfig(Config):
    """An environment from another package."""

    type: Annotated[str, Trusted("imports it")] = Field(pattern=r"^[A-Za-z_][\w.\-]*(:[A-Za-z_]\w*)?$")
    """Name registered under the entry-point group ``coevo.envs``, or ``package.module:Class``."""
    options: Annotated[dict[str, JsonValue], Trusted("passes them to that code")] = Field(default_factory=dict)
    """Keyword arguments of the environment's constructor."""
    simulator: SimulatorConfig = Field(default=EMBEDDED, exclude_if=lambda simulator: simulator == EMBEDDED)
    """Workers and limits, if the environment is a stateful one."""
    python: InterpreterPath = Field(default=None, exclude_if=lambda python: python is None)
    """Python interpreter of the workers, if the environment is a stateful one; null for this one."""


BUILT_IN = (
    "homerules", "babyai", "babyai-rules", "minesweeper", "rows", "sokoban", "webshop",
    "gymnasium", "factory", "openenv", "mcp", "verifiers", "tau2", "appworld",
)  # fmt: skip
"""Environments with settings of their own; all others are named with their options."""


def _which(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return kind if kind in BUILT_IN else "plugin"


EnvConfig = Annotated[
    Annotated[HomeRulesConfig, Tag("homerules")]
    | Annotated[BabyAIConfig, Tag("babyai")]
    | Annotated[BabyAIRulesConfig, Tag("babyai-rules")]
    | Annotated[MineSweeperConfig, Tag("minesweeper")]
    | Annotated[RowsConfig, Tag("rows")]
    | Annotated[GymnasiumConfig, Tag("gymnasium")]
    | Annotated[FactoryConfig, Tag("factory")]
    | Annotated[OpenEnvConfig, Tag("openenv")]
    | Annotated[McpConfig, Tag("mcp")]
    | Annotated[VerifiersConfig, Tag("verifiers")]
    | Annotated[SokobanConfig, Tag("sokoban")]
    | Annotated[WebShopConfig, Tag("webshop")]
    | Annotated[Tau2Config, Tag("tau2")]
    | Annotated[AppWorldConfig, Tag("appworld")]
    | Annotated[PluginEnvConfig, Tag("plugin")],
    Discriminator(_which),
]
