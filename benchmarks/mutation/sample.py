"""Mutants of the source, listed by cosmic-ray: one changed comparison, operator, constant or condition each."""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from coevo.utilities.errors import CoevoError

FOLDERS = ("configs", "memory", "models/advantages", "models/losses", "models/rewards", "records", "utilities")
KINDS = ("ReplaceBinaryOperator", "ReplaceComparisonOperator", "ReplaceUnaryOperator", "NumberReplacer", "AddNot")
KEYWORDS = ("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd")
SourcePosition = tuple[int, int]


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of one module: ``occurrence`` counts the places at which the operator applies."""

    path: str
    position: SourcePosition
    operator: str
    occurrence: int


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Mutants at ``count`` different places, each place as likely as any other, in random order.

    Raises:
        CoevoError: cosmic-ray is not installed.
    """
    if find_spec("cosmic_ray") is None:
        raise CoevoError("the benchmark of mutants needs cosmic-ray: pip install 'coevo[bench]'")
    places: dict[tuple[str, SourcePosition], list[Mutant]] = defaultdict(list)
    for path in _modules(root):
        for mutant in _of(root, path):
            places[path, mutant.position].append(mutant)
    chosen = random.Random(seed)
    return [chosen.choice(places[place]) for place in chosen.sample(sorted(places), count)]


def mutated(root: Path, mutant: Mutant) -> str:
    """Source of the mutant's module with its change."""
    operator = import_module("cosmic_ray.plugins").get_operator(mutant.operator)()
    source = (root / mutant.path).read_text(encoding="utf-8")
    return str(import_module("cosmic_ray.mutating").mutate_code(source, operator, mutant.occurrence))


def _modules(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def _of(root: Path, path: str) -> Iterator[Mutant]:
    source = (root / path).read_text(encoding="utf-8")
    tree, types = import_module("cosmic_ray.ast").get_ast(source), _annotations(source)
    nodes = list(import_module("cosmic_ray.ast").ast_nodes(tree))
    plugins = import_module("cosmic_ray.plugins")
    for name in plugins.operator_names():
        if name.rpartition("/")[2].startswith(KINDS + KEYWORDS):
            operator = plugins.get_operator(name)()
            starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, start in enumerate(starts):
                if not any(first <= start < last for first, last in types):
                    yield Mutant(path, start, name, occurrence)


def _annotations(source: str) -> list[tuple[SourcePosition, SourcePosition]]:
    """Extent of each annotation: a changed type is an error of import, which proves nothing about a test."""
    nodes = list(ast.walk(ast.parse(source)))
    found = [node.annotation for node in nodes if isinstance(node, ast.arg | ast.AnnAssign)]
    found += [node.returns for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found += [node for node in nodes if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated"]
    types = [node for node in found if node is not None]
    return [((n.lineno, n.col_offset), (n.end_lineno or n.lineno, n.end_col_offset or 0)) for n in types]
