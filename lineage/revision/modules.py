"""Modules of the user's own that a configuration names: environments and parts from outside of coevo."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from itertools import chain
from modulefinder import ModuleFinder
from pathlib import Path

from coevo.configs.errors import CoevoError
from coevo.configs.run import RunConfig
from coevo.lineage.revision.code import Code, code_revision, flat, hash_of_files, packages


def code_of_run(config: RunConfig) -> Code:
    """Code that decides the revisions of a run made now.

    Raises:
        CoevoError: a module of the user's own cannot be parsed.
    """
    return Code(code_revision(), packages(), own_modules(config))


def own_modules(config: RunConfig) -> Mapping[str, str]:
    """SHA-256 (hex) over the sources of each module that the settings name, by module; nothing is imported.

    Sources of a module in ``python_path`` are its package, and the modules there that it imports anywhere in its code.
    Sources of an installed module are its package. They are read once per process, as Python imports them once.

    Raises:
        CoevoError: a module cannot be parsed.
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
    for part in chain.from_iterable(each.entry_points for each in distributions()):
        if part.group.startswith("coevo.") and part.name in kinds:
            yield part.module


def _sources(name: str, folders: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Source files of a module, each with its path below the folder that it is imported from."""
    spec = PathFinder.find_spec(name.partition(".")[0], [*sys.path, *folders])  # the installed one comes first
    if spec is None:
        return  # the import says that there is no such module
    package, files = _package(spec)
    if package in folders:
        files |= set(_imported(files, folders))
    for path in files:
        yield next(path.relative_to(each).as_posix() for each in (package, *folders) if path.is_relative_to(each)), path


def _package(spec: ModuleSpec) -> tuple[str, set[Path]]:
    """Folder that a module without a dot is imported from, and its source files: those of a package, or its own."""
    places = list(map(Path, spec.submodule_search_locations or ()))
    if places:
        return str(places[0].parent), {path for place in places for path in place.rglob("*.py")}
    module = Path(spec.origin or "")
    return str(module.parent), {module} if module.suffix == ".py" else set()


def _imported(files: Iterable[Path], folders: tuple[str, ...]) -> Iterator[Path]:
    """Modules in the folders that these files import, directly or not."""
    finder = ModuleFinder(list(folders))
    try:
        for path in files:
            finder.run_script(str(path))
    except SyntaxError as error:
        raise CoevoError(f"{error.filename}, line {error.lineno}: {error.msg}: mend the module") from error
    found = (getattr(module, "__file__", None) for module in finder.modules.values())
    yield from (Path(file) for file in found if file)
