"""The environments that coevo ships: where their classes are, and what `coevo envs` says of them without an import.

Some of them import libraries that take longer than all other parts of the command line.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from coevo.utilities.extras import lacks


@dataclass(frozen=True, slots=True)
class ShippedEnvironment:
    """An environment of coevo.

    Attributes:
        path: ``package.module:Class``.
        summary: first line of the class's docstring.
        panels: names of its held-out panels.
        extra: extra that brings its packages; empty if the core has them.
        variable: environment variable that names what the user downloaded for it; empty if nothing is needed.
        source: how to get that.
    """

    path: str
    summary: str
    panels: tuple[str, ...]
    extra: str = ""
    variable: str = ""
    source: str = ""

    @property
    def remedy(self) -> str:
        """Command that gets what is missing; empty if it can be played."""
        if self.variable and not os.environ.get(self.variable):
            return f"{self.source}, then set {self.variable}"
        return f"pip install 'coevo[{self.extra}]'" if self.extra and lacks(self.extra) else ""


GROUP = "coevo.envs"
"""Entry-point group under which packages register theirs."""
SHIPPED: Mapping[str, ShippedEnvironment] = {
    "homerules": ShippedEnvironment(
        "coevo.envs.homerules:HomeRules",
        "A household whose facts are hidden: sixteen houses of one world.",
        ("seen-houses", "no-bank", "other-facts", "other-houses"),
    ),
    "babyai": ShippedEnvironment(
        "coevo.envs.babyai:BabyAI",
        "Rooms of BabyAI with things to go to, pick up, open and put down (extra babyai).",
        ("held-out", "new-rooms"),
        "babyai",
    ),
    "babyai-rules": ShippedEnvironment(
        "coevo.envs.babyai.rules:BabyAIRules",
        "Towers of BabyAI rooms whose doors obey hidden customs (extra babyai).",
        ("seen-towers", "no-bank", "other-facts"),
        "babyai",
    ),
    "minesweeper": ShippedEnvironment(
        "coevo.envs.minesweeper:MineSweeper",
        "Cells that are opened, with numbers that count the mines beside them, on fields drawn by this project.",
        ("held-out", "one-more", "two-more"),
    ),
    "sokoban": ShippedEnvironment(
        "coevo.envs.sokoban:Sokoban",
        "Boxes that are pushed onto targets, on small boards drawn by this project.",
        ("held-out", "more-boxes"),
    ),
    "textworld": ShippedEnvironment(
        "coevo.envs.textworld:TextWorld",
        "Text adventures generated from seeds: move, take, open and place things until the goal is reached.",
        ("new-games",),
        "textworld",
    ),
    "webshop": ShippedEnvironment(
        "coevo.envs.webshop:WebShop",
        "A shop of text pages, in which a product is found, configured and bought.",
        ("held-out",),
    ),
    "tau2": ShippedEnvironment(
        "coevo.envs.tau2:Tau2",
        "Customer service of tau2-bench in an authors' checkout: telecom solo, or all domains with a user model.",
        ("solo", "with-user"),
        variable="TAU2_BENCH_DIR",
        source="git clone https://github.com/sierra-research/tau2-bench",
    ),
    "appworld": ShippedEnvironment(
        "coevo.envs.appworld:AppWorld",
        "Code blocks in AppWorld's world of apps, which runs in an interpreter of its own (APPWORLD_PYTHON).",
        ("dev", "test_normal", "test_challenge"),
        variable="APPWORLD_PYTHON",
        source="python -m venv DIR && DIR/bin/pip install appworld==0.1.3",
    ),
    "rows": ShippedEnvironment(
        "coevo.envs.rows.rows_environment:Rows",
        "A table of tasks with a reward function: one answer per task, or calls of Python functions before it.",
        ("held-out",),
    ),
    "gymnasium": ShippedEnvironment(
        "coevo.envs.adapters.adapter_environment:GymnasiumEnvironment",
        "Environments of Gymnasium with discrete or text actions (extra gymnasium).",
        ("held-out",),
        "gymnasium",
    ),
    "factory": ShippedEnvironment(
        "coevo.envs.adapters.adapter_environment:FactoryEnvironment",
        "Classes with TRL's protocol of environments, unchanged.",
        ("held-out",),
    ),
    "openenv": ShippedEnvironment(
        "coevo.envs.adapters.adapter_environment:OpenEnvEnvironment",
        "Servers of OpenEnv, by their address (extra openenv).",
        ("held-out",),
        "openenv",
    ),
    "mcp": ShippedEnvironment(
        "coevo.envs.adapters.adapter_environment:McpEnvironment",
        "Tools of an MCP server, and rows with a reward.",
        ("held-out",),
    ),
    "verifiers": ShippedEnvironment(
        "coevo.envs.adapters.adapter_environment:VerifiersEnvironment",
        "Tasksets of verifiers (v1), in an interpreter of their own (env.python).",
        ("held-out",),
    ),
}
"""By the name that `env.type` has."""
