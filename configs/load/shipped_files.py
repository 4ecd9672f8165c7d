"""Shipped YAML files by kind and name. Nothing of them is parsed, so that listing them loads no configuration class."""

from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""Folder of the shipped files."""


def names(kind: str) -> list[str]:
    """Names of the shipped files of one kind: ``recipes``, ``methods``, ``envs``, ``models`` or ``studies``."""
    return sorted(shipped(kind))


def shipped(kind: str) -> dict[str, Path]:
    """Shipped files of one kind by name; recipes and studies stand in folders."""
    return {path.stem: path for path in (ROOT / kind).rglob("*.yaml")}


def describe(kind: str, name: str) -> str:
    """Leading comment of a shipped file, as one line."""
    lines = shipped(kind)[name].read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("#").strip() for line in takewhile(lambda line: line.startswith("#"), lines))
