"""Structure of the project: sizes of folders and modules, and how much of the rest a class knows."""

import ast
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

import grimp

from coevo.memory.admission.base import ADMISSIONS
from coevo.memory.retrieval.base import SCORERS
from coevo.memory.writers.base import WRITERS
from coevo.models.advantages import ADVANTAGES
from coevo.models.rewards import REWARDS

ROOT = Path(__file__).parents[2]
ROOMS = ("benchmarks", "configs", "envs", "flows", "lineage", "memory", "models", "records", "tasks")
LINES = {path: path.read_text("utf-8").count("\n") for room in ROOMS for path in (ROOT / room).rglob("*.py")}
MODULES = [path for path in LINES if path.name != "__init__.py"]


def test_a_folder_has_at_most_twenty_modules():
    assert {folder: n for folder, n in Counter(path.parent for path in MODULES).items() if n > 20} == {}


def test_modules_are_neither_long_nor_swarms_of_short_ones():
    assert median(LINES.values()) <= 100
    assert quantiles(LINES.values(), n=10)[-1] <= 170
    assert {path: n for path, n in LINES.items() if n > 320} == {}
    short = [path for path in MODULES if LINES[path] < 30 and _named(path) not in _parts()]
    assert len(short) <= 15, short


def test_functions_are_short():
    lengths = [function.end_lineno - function.lineno + 1 for path in LINES for function in _functions(path)]
    assert median(lengths) <= 6
    assert quantiles(lengths, n=10)[-1] <= 15


def test_a_class_knows_at_most_fourteen_modules():
    graph = grimp.build_graph("coevo")
    classes = {_named(path) for path in MODULES if _has_class(path)} & graph.modules
    known = {name: len(graph.find_modules_directly_imported_by(name)) for name in classes}
    assert {name: n for name, n in known.items() if n > 14} == {}


def _functions(path):
    """Functions and methods; one has the lines from ``def`` to its end, docstring included."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _parts():
    """Modules of parts that a configuration chooses by name."""
    registries = (ADMISSIONS, ADVANTAGES, REWARDS, SCORERS, WRITERS)
    return {reference.partition(":")[0] for registry in registries for reference in registry.parts.values()}


def _has_class(path):
    return any(isinstance(node, ast.ClassDef) for node in ast.parse(path.read_text("utf-8")).body)


def _named(path):
    return ".".join(("coevo", *path.relative_to(ROOT).with_suffix("").parts))
