"""Entries of the experience bank, and the verdicts that admit them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from coevo.records.intervals import around

LONGEST = 2000
"""Maximum length of a text field of an entry, in characters."""

ZONES = ("strategy", "warning")
"""Purpose of an entry: advice to follow, or a mistake to avoid (E+ and E- of SLEA-RL)."""

LEVELS = ("principle", "pattern", "example")
"""Generality of an entry, most general first (SLEA-RL section 3.1)."""

TEXTS = ("strategy", "condition", "example", "keywords", "scope")
"""Fields that hold text from the environment."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One lesson (CoEvo-RL section 3.4: strategy, condition, example action, keywords).

    Attributes:
        id: see ``entry_id``.
        strategy: the reusable lesson; the prompt shows this text.
        condition: situation in which the lesson applies.
        example: an action that grounds it.
        keywords: retrieval keywords, separated by blanks.
        scope: key of the tasks it was learned from (``bank.key``); empty if it applies everywhere.
        split: split of the source episodes; never an evaluation panel.
        sources: ids of the episodes it was written from.
        created: revision in which it entered.
        edited: revision of its last change.
        retired: revision in which it left, -1 while it is active.
        zone: one of ``ZONES``.
        level: one of ``LEVELS``, or empty if its writer does not distinguish levels.
    """

    id: str
    strategy: str
    condition: str
    example: str
    keywords: str
    scope: str
    split: str
    sources: tuple[str, ...]
    created: int
    edited: int
    retired: int = -1
    zone: str = "strategy"
    level: str = ""

    @property
    def active(self) -> bool:
        """True if retrieval may return it."""
        return self.retired < 0


def entry_id(scope: str, strategy: str) -> str:
    """First 12 hex digits of the SHA-256 of scope and strategy: equal lessons have equal ids."""
    return hashlib.sha256(f"{scope}\n{strategy}".encode()).hexdigest()[:12]


def rescoped(entry: Entry, scope: str) -> Entry:
    """Copy an entry into another pool."""
    return entry if scope == entry.scope else replace(entry, scope=scope, id=entry_id(scope, entry.strategy))


def entered(entry: Entry, revision: int) -> Entry:
    """Copy a candidate as an entry of the revision in which it enters."""
    return replace(entry, created=revision, edited=revision)


def also_from(entry: Entry, sources: Iterable[str]) -> Entry:
    """Copy an entry and add source episodes."""
    return replace(entry, sources=tuple(dict.fromkeys([*entry.sources, *sources])))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of replaying one batch of candidates (CoEvo-RL Eq. 7), recorded for admitted and refused batches.

    Attributes:
        revision: revision that it belongs to.
        candidates: ids of the entries judged together.
        admitted: True if they entered the bank.
        reward_with: mean reward of the replays with the candidates in the bank.
        reward_without: mean reward of the paired replays without them.
        difference: mean paired difference.
        stderr: standard error of that mean; 0 for a single pair.
        pairs: number of paired replays.
        delta: threshold that the difference had to exceed.
    """

    revision: int
    candidates: tuple[str, ...]
    admitted: bool
    reward_with: float
    reward_without: float
    difference: float
    stderr: float
    pairs: int
    delta: float

    @property
    def interval(self) -> tuple[float, float]:
        """Normal 95 % interval of the difference."""
        found = around(self.difference, self.stderr)
        return found.low, found.high

    @property
    def inside_noise(self) -> bool:
        """True if the interval contains the threshold, or there is one pair: the verdict could be the opposite."""
        low, high = self.interval
        return self.pairs == 1 or low <= self.delta <= high
