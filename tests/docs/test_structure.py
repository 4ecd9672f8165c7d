"""Structure of the project: no file and no function is too long to read in one go."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("benchmarks", "configs", "envs", "flows", "lineage", "memory", "models", "records", "tasks", "utilities")
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


def test_a_class_or_alias_name_stands_in_one_module():
    places = {}
    for path, text in FILES.items():
        for name in _named(ast.parse(text)):
            places.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def _named(module):
    """Names of the classes of a module, and of its aliases: ``Indices = …``."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.lstrip("_")[:1].isupper() and not name.isupper():
                yield name
