"""Tasks: frozen data that an environment can start from, with an identity of their own."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol


@dataclass(frozen=True)
class Task:
    """One task for an agent.

    Attributes:
        env: name of the environment.
        kind: family of the task, for tables by type.
        instruction: the task in words, as the agent reads it.
        scope: the environment's task key; retrieval can be restricted to entries of the same scope.
        split: ``train``, or the name of the panel it belongs to. Not part of the identity.
        data: JSON values from which the environment starts the task.
        id: first 16 hex digits of the SHA-256 of all the above except ``split``.
    """

    env: str
    kind: str
    instruction: str
    scope: str
    split: str
    data: Mapping[str, Any]
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))
        identity = [self.env, self.kind, self.instruction, self.scope, dict(self.data)]
        object.__setattr__(self, "id", _hash_of(identity)[:16])

    @property
    def data_digest(self) -> str:
        """SHA-256 (hex) of ``data``."""
        return _hash_of(dict(self.data))


def _hash_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class About(Protocol):
    """Fields of a task that retrieval needs, see ``Task``."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def instruction(self) -> str: ...  # noqa: D102
    @property
    def scope(self) -> str: ...  # noqa: D102


KeyFunction = Callable[[About], str]
"""Function from a task to the key of its pool of experience."""


KEYS: Mapping[str, KeyFunction] = {
    "scope": attrgetter("scope"),
    "kind": attrgetter("kind"),
    "task": attrgetter("id"),
    "scope+kind": lambda task: f"{task.scope}/{task.kind}",
}
"""Key functions by their name in ``bank.key``."""


def key_by(what: str) -> KeyFunction:
    """Key function of ``bank.key``: ``scope``, ``kind``, ``scope+kind`` or ``task``."""
    return KEYS[what]


def name_of(key: KeyFunction) -> str:
    """Name of a key function in ``bank.key``."""
    return next(name for name, known in KEYS.items() if known is key)


BY_SCOPE = key_by("scope")
"""Key function whose pools are the environment's own scopes."""


@dataclass(frozen=True)
class Panel:
    """A fixed list of held-out tasks.

    Attributes:
        name: for example ``seen-houses``.
        version: version of the environment that made it.
        tasks: in playing order.
    """

    name: str
    version: str
    tasks: tuple[Task, ...]

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of environment version and task identities."""
        return hashlib.sha256("\n".join([self.version, *(task.id for task in self.tasks)]).encode()).hexdigest()
