"""Structure of the project: no file and no function is too long to read in one go."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("benchmarks", "configs", "envs", "flows", "lineage", "memory", "models", "records", "tasks")
FILES = {path: path.read_text("utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")}


def test_no_file_has_more_than_400_lines():
    assert {path: n for path, text in FILES.items() if (n := text.count("\n")) > 400} == {}


def test_no_function_has_more_than_45_lines():
    assert {place: n for place, n in map(_measured, _functions()) if n > 45} == {}


def _functions():
    for path, text in FILES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def _measured(found):
    """Its place, and its lines from ``def`` to its end, docstring included."""
    path, node = found
    return f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - node.lineno + 1
