"""The cache during a check: every object is hashed once, however many revisions need it."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coevo.lineage.objects.cache import Cache


class CheckedCache(Cache):
    """The cache at ``root``, with the problems found so far."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._problems: dict[str, str | None] = {}

    def examine(self, contents: Iterable[str]) -> None:
        """Hash these objects in advance, several at a time."""
        new = sorted(set(contents) - self._problems.keys())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._problems.update(zip(new, pool.map(super().problem, new), strict=True))

    def problem(self, content: str) -> str | None:
        """Problem of an object: ``missing``, ``corrupt``, or None."""
        self.examine([content])
        return self._problems[content]

    def forget(self, content: str) -> None:
        """Hash an object again at its next use."""
        self._problems.pop(content, None)
