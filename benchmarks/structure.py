"""The structure of the code: what a reader has to hold in mind, beside an earlier commit.

Nothing here is kept: both trees are counted when it is asked for.
"""

import ast
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench import ROOT, Bench

BEFORE = "8e4bef1e"
"""Commit that is counted beside the present tree."""
ROOMS = ("configs", "envs", "flows", "lineage", "memory", "models", "records", "tasks", "utilities")
MAX_PARAMETERS = 6
ITERATION = """
import json, sys
from pathlib import Path
import coevo
from coevo.flows import coevolve

ROOT, entered, iterate = str(Path.cwd()), [], coevolve.iterate

def profiled(*args):
    files = set()
    sys.setprofile(lambda frame, event, value: event == "call" and files.add(frame.f_code.co_filename))
    try:
        return iterate(*args)
    finally:
        sys.setprofile(None)
        entered.append(sorted({str(Path(f).resolve()) for f in files if f.startswith(ROOT) and ".venv" not in f}))

coevolve.iterate = profiled
settings = {"iterations": 3, "warmstart": None, "evaluation.tasks": 16, "evaluation.final_panels": []}
coevo.run("homerules-coevo-rl", settings, quiet=True, workspace=sys.argv[1])
print("ENTERED", json.dumps(entered))
"""
"""Plays three iterations of the default recipe, and prints the files that the main thread entered in each."""


def run(bench: Bench) -> None:
    """Count both trees and print them side by side."""
    now = figures(ROOT)
    with TemporaryDirectory() as folder:
        tree = Path(folder, "before")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, BEFORE], cwd=ROOT, check=True)
        try:
            before = figures(tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    print(f"\n{'':58}{BEFORE:>10}{'now':>10}")
    for name, value in now.items():
        print(f"{name:58}{before[name]:>10,}{value:>10,}")


def figures(root: Path) -> dict[str, int]:
    """All figures of a tree, by name."""
    tree, tests = Tree(root), [root / name for name in _tracked(root) if name.startswith("tests/")]
    entered = [set(map(Path, files)) for files in _entered(root)]
    return {
        "modules": len(tree.modules),
        "product lines": sum(map(_lines, tree.modules.values())),
        "test lines": sum(map(_lines, tests)),
        "modules with one importer": len(tree.with_one_importer()),
        "file names in two or more folders": sum(n > 1 for n in tree.file_names().values()),
        "class names in two or more modules": sum(n > 1 for n in tree.class_names().values()),
        f"functions with more than {MAX_PARAMETERS} parameters": sum(map(_has_many_parameters, tree.functions())),
        "public methods of the largest class": max(_public_methods(each, tree.contract) for each in tree.classes()),
        "imports of a step by a step": tree.imports_between_steps(),
        "files entered in an iteration": len(entered[1]),
        "files entered in the last iteration": len(entered[-1]),
        "files entered in an iteration that name the session": sum(_names_session(file) for file in entered[1]),
    }


@dataclass(frozen=True)
class Tree:
    """The product's modules in a checkout."""

    root: Path

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Path of each module by its dotted name."""
        names = [name for name in _tracked(self.root) if name.startswith(tuple(f"{room}/" for room in ROOMS))]
        paths = {_dotted(name): self.root / name for name in names}
        return paths | {"coevo": self.root / "coevo" / "__init__.py"}

    @cached_property
    def parsed(self) -> dict[str, ast.Module]:
        """Syntax tree of each module by its dotted name."""
        return {name: ast.parse(path.read_text("utf-8")) for name, path in self.modules.items()}

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Modules that name a module in an import, or in a table of parts, by its dotted name."""
        found: dict[str, set[str]] = defaultdict(set)
        for importer, parsed in self.parsed.items():
            for name in _imported(parsed):
                module = name if name in self.modules else name.rpartition(".")[0]
                if module in self.modules:
                    found[module].add(importer)
        return found

    def with_one_importer(self) -> list[str]:
        """Modules that one other module imports; commands, and packages below ``envs``, aside."""
        left_out = ("coevo.flows.cli.", "coevo.envs.")
        alone = [name for name, importers in self.importers.items() if len(importers) == 1]
        return [name for name in alone if not name.startswith(left_out) and self.modules[name].stem != "__init__"]

    def file_names(self) -> Counter[str]:
        """Number of modules of each file name."""
        return Counter(path.name for path in self.modules.values() if path.stem != "__init__")

    def classes(self) -> Iterator[ast.ClassDef]:
        """All classes at the top of modules; that of environments aside, which is a contract with its users."""
        for parsed in self.parsed.values():
            yield from (node for node in parsed.body if isinstance(node, ast.ClassDef) and node.name != "Environment")

    @cached_property
    def contract(self) -> set[str]:
        """Methods of an environment, which each one implements."""
        parsed = self.parsed.get("coevo.envs.base") or ast.Module([], [])
        named = (node for node in parsed.body if isinstance(node, ast.ClassDef) and node.name == "Environment")
        return {each.name for node in named for each in node.body if isinstance(each, ast.FunctionDef)}

    def class_names(self) -> Counter[str]:
        """Number of modules of each class name."""
        return Counter(node.name for node in self.classes())

    def functions(self) -> Iterator[ast.FunctionDef]:
        """All functions and methods."""
        for parsed in self.parsed.values():
            yield from (node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef))

    def imports_between_steps(self) -> int:
        """Imports of a module of ``tasks/steps`` by another."""
        steps = {name for name in self.modules if name.startswith("coevo.tasks.steps.")}
        return sum(len(self.importers[name] & steps) for name in steps)


def _tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=root, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if not (root / name).is_symlink()]


def _dotted(name: str) -> str:
    return "coevo." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("coevo."):
            yield node.value


def _lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def _has_many_parameters(function: ast.FunctionDef) -> bool:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}]) > MAX_PARAMETERS


def _public_methods(node: ast.ClassDef, contract: set[str]) -> int:
    """Public methods of a class, without properties, and without what an environment implements of its contract."""
    aside = contract if any("Environment" in ast.unparse(base) for base in node.bases) else set[str]()
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    methods = [each for each in methods if each.name not in aside]
    return sum("property" not in "".join(map(ast.unparse, each.decorator_list)) for each in methods)


def _entered(root: Path) -> list[Iterable[str]]:
    """Files that the main thread entered, for each iteration of a short run with a tree's code."""
    with TemporaryDirectory() as workspace:
        python = partial(_python, root)
        try:
            said = python("-c", ITERATION, workspace)
        finally:
            python("-m", "coevo.flows", "down", "--workspace", workspace)
    (line,) = (line for line in said.splitlines() if line.startswith("ENTERED "))
    return list(json.loads(line.removeprefix("ENTERED ")))


def _python(root: Path, *arguments: str) -> str:
    """Output of Python with a tree's code, which its child processes have as well."""
    command, environment = [sys.executable, "-P", *arguments], {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def _names_session(path: Path) -> bool:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return any(isinstance(node, ast.arg) and node.arg == "session" for node in nodes)
