"""Entries of the experience bank, and the verdicts that let them in."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

LONGEST = 2000
"""Most characters of a text field of an entry."""

ZONES = ("strategy", "warning")
"""What an entry is for: to be followed, or to be avoided (E+ and E- of SLEA-RL)."""

LEVELS = ("principle", "pattern", "example")
"""How general an entry is, from the most general on (SLEA-RL section 3.1)."""

TEXTS = ("strategy", "condition", "example", "keywords", "scope")
"""The fields that hold text of the world."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One lesson (CoEvo-RL section 3.4: strategy, condition, example action, keywords).

    Attributes:
        id: see ``entry_id``.
        strategy: the reusable lesson; what the prompt shows.
        condition: when it applies.
        example: an action that grounds it.
        keywords: retrieval keywords, blank-separated.
        scope: key of the tasks it was learned from (``bank.key``); empty where it holds everywhere.
        split: split of the source episodes; never an evaluation panel.
        sources: ids of the episodes it was written from.
        created: revision in which it entered.
        edited: revision of its last change.
        retired: revision in which it left, -1 while it is active.
        zone: one of ``ZONES``.
        level: one of ``LEVELS``, or empty where its writer does not tell them apart.
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
        """Whether retrieval may return it."""
        return self.retired < 0


def entry_id(scope: str, strategy: str) -> str:
    """The first 12 hex digits of the SHA-256 of scope and strategy: the same lesson has the same id."""
    return hashlib.sha256(f"{scope}\n{strategy}".encode()).hexdigest()[:12]


def rescoped(entry: Entry, scope: str) -> Entry:
    """The same lesson in another pool."""
    return entry if scope == entry.scope else replace(entry, scope=scope, id=entry_id(scope, entry.strategy))


def also_from(entry: Entry, sources: Iterable[str]) -> Entry:
    """The same lesson with more source episodes."""
    return replace(entry, sources=tuple(dict.fromkeys([*entry.sources, *sources])))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What replay said of one batch of candidates (CoEvo-RL Eq. 7), kept whether or not it let them in.

    Attributes:
        revision: revision that it belongs to.
        candidates: ids of the entries judged together.
        admitted: whether they entered.
        reward_with: mean reward of the replays with the candidates in the bank.
        reward_without: mean reward of the paired replays without them.
        difference: mean paired difference.
        stderr: standard error of that mean; 0 for a single pair.
        pairs: number of paired replays.
        delta: the threshold that the difference had to exceed.
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
        return self.difference - 1.96 * self.stderr, self.difference + 1.96 * self.stderr

    @property
    def inside_noise(self) -> bool:
        """Whether the interval contains the threshold: the verdict could have gone the other way."""
        low, high = self.interval
        return low <= self.delta <= high
