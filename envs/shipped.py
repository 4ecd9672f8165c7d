"""The environments that coevo ships: where their classes are, and what `coevo envs` says of them without an import.

Some of them import libraries that take longer than all other parts of the command line.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from coevo.utilities.extras import lacks


@dataclass(frozen=True, slots=True)
class Download:
    """Something that the user gets for an environment: a folder or an interpreter.

    Attributes:
        variable: environment variable that names it.
        source: command that gets it.
        holds: path below the folder that the variable names; empty if it names an interpreter.
        instead: package of this interpreter that makes another one unnecessary; empty for none.
        default: folder that stands for an unset variable; empty for none.
    """

    variable: str
    source: str
    holds: str = ""
    instead: str = ""
    default: str = ""

    @property
    def remedy(self) -> str:
        """How to get it; empty if it is there."""
        given = os.environ.get(self.variable, "")
        if self.holds:
            folder = given or self.default
            there = bool(folder) and (Path(folder) / self.holds).is_dir()
        else:
            there = os.access(given, os.X_OK) and Path(given).is_file()
        if there or (not given and self.instead and find_spec(self.instead) is not None):
            return ""
        lacking = f"has no {self.holds}" if self.holds else "is no interpreter"
        named = f"{self.variable}={given} {lacking}: " if given else ""
        return f"{named}{self.source}, then set {self.variable}"


@dataclass(frozen=True, slots=True)
class ShippedEnvironment:
    """An environment of coevo.

    Attributes:
        path: ``package.module:Class``.
        summary: first line of the class's docstring.
        panels: names of its held-out panels.
        extra: extra that brings its packages; empty if the core has them.
        downloads: what the user gets for it, in order.
        sandboxed: whether it needs a sandbox, which the system may refuse.
    """

    path: str
    summary: str
    panels: tuple[str, ...]
    extra: str = ""
    downloads: tuple[Download, ...] = ()
    sandboxed: bool = False

    @property
    def remedy(self) -> str:
        """Command that gets what is missing, or why the system refuses it; empty if it can be played."""
        if self.sandboxed:
            from coevo.envs.lifelong.sandbox import refusal

            return refusal()
        missing = next((each.remedy for each in self.downloads if each.remedy), "")
        if missing:
            return missing
        return f"pip install 'coevo[{self.extra}]'" if self.extra and lacks(self.extra) else ""


GROUP = "coevo.envs"
"""Entry-point group under which packages register theirs."""
SHIPPED: Mapping[str, ShippedEnvironment] = {
    "homerules": ShippedEnvironment(
        "coevo.envs.homerules:HomeRules",
        "A household whose facts are hidden: sixteen houses of one world.",
        ("seen-houses", "no-bank", "other-facts", "other-houses"),
    ),
    "alfworld": ShippedEnvironment(
        "coevo.envs.alfworld:AlfWorld",
        "Households in text after ALFWorld: things that are found, treated and put elsewhere (extra alfworld).",
        ("seen-rooms", "unseen-rooms"),
        "alfworld",
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
    "searchqa": ShippedEnvironment(
        "coevo.envs.searchqa:SearchQA",
        "Questions that are answered by searching an encyclopedia whose sources contradict each other.",
        ("held-out", "no-bank", "other-facts"),
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
        downloads=(
            Download(
                "TAU2_BENCH_DIR", "git clone https://github.com/sierra-research/tau2-bench", holds="data/tau2/domains"
            ),
            Download(
                "TAU2_BENCH_PYTHON",
                "python -m venv DIR && DIR/bin/pip install numpy pydantic loguru docstring-parser deepdiff addict toml "
                "pyyaml python-dotenv pandas",
                instead="addict",
            ),
        ),
    ),
    "appworld": ShippedEnvironment(
        "coevo.envs.appworld:AppWorld",
        "Code blocks in AppWorld's world of apps, which runs in an interpreter of its own (APPWORLD_PYTHON).",
        ("dev", "test_normal", "test_challenge"),
        downloads=(
            Download("APPWORLD_PYTHON", "python -m venv DIR && DIR/bin/pip install appworld==0.1.3"),
            Download("APPWORLD_ROOT", "appworld install && appworld download data", holds="data/tasks", default="."),
        ),
    ),
    "lifelong-db": ShippedEnvironment(
        "coevo.envs.lifelong.lifelong_db:LifelongDb",
        "A database of one table, in which something is looked up or changed with SQL (extra lifelong).",
        ("held-out", "no-bank", "other-facts"),
        "lifelong",
    ),
    "lifelong-os": ShippedEnvironment(
        "coevo.envs.lifelong.lifelong_os:LifelongOs",
        "A small Linux system in a sandbox, in which files and accounts are brought into the state that is asked for.",
        ("held-out",),
        sandboxed=True,
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
