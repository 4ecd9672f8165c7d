"""Structure of the project: no file and no function is too long to read in one go."""

import ast
import re
from functools import cache
from pathlib import Path

from benchmarks.structure import Tree

ROOT = Path(__file__).parents[2]
ROOMS = ("benchmarks", "configs", "envs", "flows", "lineage", "memory", "models", "records", "tasks", "utilities")
FILES = {path: path.read_text("utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")}
TREE = Tree(ROOT)


@cache
def parsed(path):
    """A file's syntax tree; that of a module of the product is read once, for all tests."""
    return _modules().get(path) or ast.parse(FILES[path])


@cache
def _modules():
    return {TREE.modules[name]: parsed for name, parsed in TREE.parsed.items()}


def test_no_file_has_more_than_400_lines():
    assert {path: n for path, text in FILES.items() if (n := text.count("\n")) > 400} == {}


def test_no_function_has_more_than_45_lines():
    assert {place: n for place, n in map(_measured, _functions()) if n > 45} == {}


def test_few_modules_serve_one_other_alone():
    """At most 12 %: what one module needs stands in it, unless it is a thing of its own."""
    assert len(TREE.with_one_importer()) <= 0.12 * len(TREE.modules)


def test_a_limit_is_named_for_what_it_bounds():
    words = "LOOKS?|PATIENCE|GRACE|LONGEST|LARGEST|DEEPEST|FEW|MANY|MOST|LEAST"
    vague = re.compile(rf"^_?({words})\b[^\n]* = ", re.MULTILINE)
    assert {path: found for path, text in FILES.items() if (found := vague.findall(text))} == {}


def test_no_list_has_the_order_of_a_set():
    """It differs from process to process."""
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                ordering = getattr(node.func, "id", getattr(node.func, "attr", "")) in ("list", "tuple", "join")
                assert not (ordering and node.args and _is_set(node.args[0])), f"{path}:{node.lineno}"


def _is_set(node):
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset")
    return called or isinstance(node, ast.Set | ast.SetComp)


def _functions():
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def _measured(found):
    """Its place, and its lines from ``def`` to its end, docstring included."""
    path, node = found
    return f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - node.lineno + 1


def test_a_class_or_alias_name_stands_in_one_module():
    places = {}
    for path in FILES:
        for name in _named(parsed(path)):
            places.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_docstring_of_a_room_names_modules_that_are_there():
    rooms = [path for path in FILES if path.name == "__init__.py" and "benchmarks" not in path.parts]
    assert {
        room: gone for room in rooms if (gone := _names(room) - {path.stem for path in room.parent.iterdir()})
    } == {}


def _names(room):
    """Names in a room's docstring that are spelt as those of modules are."""
    return set(re.findall(r"``([a-z_]+)``", ast.get_docstring(parsed(room)) or ""))


def _named(module):
    """Names of the classes of a module, and of its aliases: ``Indices = …``."""
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.lstrip("_")[:1].isupper() and not name.isupper():
                yield name
