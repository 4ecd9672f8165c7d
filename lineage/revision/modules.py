"""Modules of the user's own that a configuration names: environments and parts from outside of coevo."""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, distributions
from itertools import chain
from pathlib import Path

from coevo.configs.run_config import RunConfig
from coevo.lineage.revision.code_version import Code, code_revision, flat, hash_of_files, packages


def code_of_run(config: RunConfig) -> Code:
    """Code that decides the revisions of a run made now."""
    return Code(code_revision(), packages(), own_modules(config))


def own_modules(config: RunConfig) -> Mapping[str, str]:
    """SHA-256 (hex) over the sources of each module that the settings name, by module; nothing is imported.

    Sources of an installed module are its package. Sources of a module in ``python_path`` are its package, and the
    packages there that its code imports anywhere. They are read once per process, as Python imports them once.
    """
    return _own_modules(tuple(sorted(set(_named(config)))), config.python_path)


@cache
def _own_modules(names: tuple[str, ...], folders: tuple[str, ...]) -> Mapping[str, str]:
    found = {name: dict(_sources(name, folders)) for name in names}
    return {name: hash_of_files(files) for name, files in found.items() if files}


def _named(config: RunConfig) -> Iterator[str]:
    """Modules of the settings ``type`` with an import path, or with the name of an installed part."""
    kinds = {str(value) for key, value in flat(config.model_dump(mode="json")).items() if key.endswith(".type")}
    yield from (kind.partition(":")[0] for kind in kinds if ":" in kind)
    yield from (part.module for part in _installed_parts() if part.name in kinds)


@cache
def _installed_parts() -> Sequence[EntryPoint]:
    """Parts that installed packages register; reading them takes milliseconds, and each revision asks."""
    found = chain.from_iterable(each.entry_points for each in distributions())
    return [part for part in found if part.group.startswith("coevo.")]


def _sources(name: str, folders: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Source files of a module, each with its path below the folder that it is imported from."""
    seen, left = set[str](), [name.partition(".")[0]]
    while left:
        package = left.pop()
        if package in seen:
            continue
        place, files = _package(package, folders)
        if place in folders or not seen:
            found = list(files)
            yield from ((path.relative_to(place).as_posix(), path) for path in found)
            left += (each for path in found for each in _imported(path)) if place in folders else ()
        seen.add(package)


def _package(name: str, folders: tuple[str, ...]) -> tuple[str, Iterable[Path]]:
    """Folder that a module without a dot is imported from, and its source files: those of a package, or its own."""
    spec = PathFinder.find_spec(name, [*sys.path, *folders])  # the installed one comes first
    places = [] if spec is None else list(map(Path, spec.submodule_search_locations or ()))
    if places:
        return str(places[0].parent), places[0].rglob("*.py")  # found as they are read: most are of no interest
    module = Path((spec.origin if spec else None) or "")
    return str(module.parent), [module] if module.suffix == ".py" else []


def _imported(path: Path) -> Iterator[str]:
    """First names of the modules that a file imports anywhere; its own package's are known."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # whoever imports it says so
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
