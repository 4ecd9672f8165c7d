"""Which code and configuration made a revision, and what has changed since."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lineage.manifest import Manifest

PACKAGES = ("configs", "records", "envs", "memory", "models", "lineage", "tasks", "flows")


@cache
def code_revision() -> str:
    """SHA-256 (hex) over the installed sources of coevo; environments from elsewhere are not part of it."""
    return source_hash(Path(__file__).parent.parent)


@cache
def code_of(*packages: str) -> str:
    """SHA-256 (hex) over the installed sources of some of coevo's packages."""
    return source_hash(Path(__file__).parent.parent, packages)


def source_hash(root: Path, packages: Iterable[str] = PACKAGES) -> str:
    """SHA-256 (hex) over path and content of every Python file of these packages under ``root``."""
    total = hashlib.sha256()
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content} {path.relative_to(root).as_posix()}\n".encode())
    return total.hexdigest()


def changes(head: Manifest, config: Mapping[str, Any], code: str) -> list[str]:
    """What differs from the last revision, one ``key: old -> new`` a change.

    Args:
        head: the last revision.
        config: resolved configuration of now; ``iterations``, the length of the run, may differ.
        code: code revision of now.
    """
    old, new = flat(head.state["config"]), flat(config)
    keys = [key for key in sorted(old.keys() | new.keys()) if key != "iterations"]
    changed = [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}" for key in keys if _shown(old, key) != _shown(new, key)
    ]
    return changed + ([f"code: {head.state['code'][:12]} -> {code[:12]}"] if head.state["code"] != code else [])


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by dotted key."""
    return dict(_flat(settings, ""))


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    else:
        yield name, list(value) if isinstance(value, tuple) else value


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return repr(settings[key]) if key in settings else "absent"
