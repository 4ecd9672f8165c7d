"""Code and configuration of a revision, and changes since then."""

import ast
import hashlib
import platform
import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, distributions
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from coevo.lineage.revision.manifest import Manifest

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig

PACKAGE = Path(__file__).parents[2]
PACKAGES = ("utilities", "configs", "records", "envs", "memory", "models", "lineage", "tasks", "flows")
DECIDING = (
    "deepspeed", "numpy", "peft", "pyarrow", "rapidfuzz", "safetensors", "scikit-learn", "scipy", "tokenizers",
    "torch", "transformers",
)  # fmt: skip
"""Packages that decide a revision: its numbers, or the bytes of its files. Stores are not among them: their content
is compared by hash.
"""


@cache
def code_revision() -> str:
    """SHA-256 (hex) over the installed sources of coevo, without environments from other packages."""
    return source_hash(PACKAGE)


@cache
def code_of(*packages: str) -> str:
    """SHA-256 (hex) over the installed sources of some of coevo's packages."""
    return source_hash(PACKAGE, packages)


def source_hash(root: Path, packages: Iterable[str] = PACKAGES) -> str:
    """SHA-256 (hex) over path and content of every Python file of these packages under ``root``."""
    files = (path for package in packages for path in (root / package).rglob("*.py"))
    return hash_of_files({path.relative_to(root).as_posix(): path for path in files})


def hash_of_files(files: Mapping[str, Path]) -> str:
    """SHA-256 (hex) over names and content of files; the names come with them."""
    total = hashlib.sha256()
    for name, path in sorted(files.items(), key=lambda file: Path(file[0])):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content} {name}\n".encode())
    return total.hexdigest()


@cache
def packages() -> Mapping[str, str]:
    """Version of Python (major and minor) and of every package in ``DECIDING``; ``absent`` for a missing one.

    That of PyTorch names its build, as ``2.13.0+cpu`` or ``2.13.0+cu130``: their numbers differ in the last bits.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, **{name: _version(name) for name in DECIDING}}


@dataclass(frozen=True, slots=True)
class Code:
    """Code that decides a revision.

    Attributes:
        revision: hash of coevo's sources.
        packages: version of each deciding package.
        modules: hash of each module of the user's own, by name.
    """

    revision: str
    packages: Mapping[str, str]
    modules: Mapping[str, str]

    @classmethod
    def of(cls, head: Manifest) -> Self:
        """Code of a revision; one that did not record its packages or modules has none."""
        return cls(head.state["code"], head.state.get("packages", {}), head.state.get("modules", {}))

    def state(self) -> dict[str, object]:
        """Entries of a manifest's state; modules only where there are some."""
        modules = {"modules": self.modules} if self.modules else {}
        return {"code": self.revision, "packages": self.packages, **modules}


def changes(head: Manifest, config: Mapping[str, Any], code: Code) -> list[str]:
    """Differences from the last revision, one ``key: old -> new`` per change.

    Args:
        head: the last revision.
        config: current resolved configuration; ``iterations``, the length of the run, may differ.
        code: current code. A revision without a record of its packages agrees with any, and one that does not know a
            module agrees with that.
    """
    old, new, made = flat(head.state["config"]), flat(config), Code.of(head)
    keys = [key for key in sorted(old.keys() | new.keys()) if key != "iterations"]
    changed = [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}" for key in keys if _shown(old, key) != _shown(new, key)
    ]
    if made.revision != code.revision:
        changed.append(f"code: {made.revision[:12]} -> {code.revision[:12]}")
    packages = made.packages or code.packages
    changed += [
        f"packages.{name}: {packages.get(name, 'absent')} -> {code.packages.get(name, 'absent')}"
        for name in sorted(packages.keys() | code.packages.keys())
        if packages.get(name) != code.packages.get(name)
    ]
    return changed + [
        f"module {name}: {made.modules[name][:12]} -> {found[:12]}"
        for name, found in sorted(code.modules.items())
        if made.modules.get(name, found) != found
    ]


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by dotted key; those in a list of sections have their position in it as a key."""
    return dict(_flat(settings, ""))


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Dotted keys, in order, with another value on either side, or on one side alone."""
    return sorted(
        key for key in ours.keys() | theirs.keys() if key not in ours or key not in theirs or ours[key] != theirs[key]
    )


def _version(package: str) -> str:
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return "absent"
    return build_of(Path(str(found.locate_file("torch"))), found.version) if package == "torch" else found.version


def build_of(torch: Path, version: str) -> str:
    """Version of PyTorch with its build.

    Args:
        torch: its directory. It is not imported, which takes seconds.
        version: version of the installed package; that from PyPI does not name its build.
    """
    file = torch / "version.py"
    facts = runpy.run_path(str(file)) if file.is_file() else {}
    named = str(facts.get("__version__", version))
    if "+" in named:
        return named
    kinds = ((prefix, facts.get(fact)) for prefix, fact in (("cu", "cuda"), ("rocm", "hip"), ("xpu", "xpu")))
    return next((f"{named}+{prefix}{str(of).replace('.', '')}" for prefix, of in kinds if of), named)


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
        for position, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{position}")
    else:
        yield name, list(value) if isinstance(value, tuple) else value


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return repr(settings[key]) if key in settings else "absent"


def code_of_run(config: "RunConfig") -> Code:
    """Code that decides the revisions of a run made now."""
    return Code(code_revision(), packages(), own_modules(config))


def own_modules(config: "RunConfig") -> Mapping[str, str]:
    """SHA-256 (hex) over the sources of each module that the settings name, by module; nothing is imported.

    Sources of an installed module are its package. Sources of a module in ``python_path`` are its package, and the
    packages there that its code imports anywhere. They are read once per process, as Python imports them once.
    """
    return _own_modules(tuple(sorted(set(_named(config)))), config.python_path)


@cache
def _own_modules(names: tuple[str, ...], folders: tuple[str, ...]) -> Mapping[str, str]:
    found = {name: dict(_sources(name, folders)) for name in names}
    return {name: hash_of_files(files) for name, files in found.items() if files}


def _named(config: "RunConfig") -> Iterator[str]:
    """Modules of the settings ``type`` with an import path, or with the name of an installed part, and of functions."""
    from coevo.configs.adapter_config import AdapterConfig
    from coevo.configs.rows_config import RowsConfig

    kinds = {str(value) for key, value in flat(config.model_dump(mode="json")).items() if key.endswith(".type")}
    yield from (kind.partition(":")[0] for kind in kinds if ":" in kind)
    yield from (part.module for part in _installed_parts() if part.name in kinds)
    if isinstance(config.env, RowsConfig | AdapterConfig):
        yield from (module for module in config.env.modules if module.partition(".")[0] != "coevo")


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
        folder, files = _package(package, folders)
        if folder in folders or not seen:
            found = list(files)
            yield from ((path.relative_to(folder).as_posix(), path) for path in found)
            left += (each for path in found for each in _imported(path)) if folder in folders else ()
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
