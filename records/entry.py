"""Entries of the experience bank, and the verdicts that admit them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from unicodedata import normalize

from coevo.records.intervals import of_gains

MAX_TEXT_CHARS = 2000
"""Maximum length of a text field of an entry, in characters."""

ZONES = ("strategy", "warning")
"""Purpose of an entry: advice to follow, or a mistake to avoid (E+ and E- of SLEA-RL)."""

LEVELS = ("principle", "pattern", "example")
"""Generality of an entry, most general first (SLEA-RL section 3.1)."""

TEXTS = ("strategy", "condition", "example", "keywords", "scope")
"""Fields that hold text from the environment."""

_DOUBLE = "\u00ab\u00bb\u201c\u201d\u201e\u201f\u2e42\u300c\u300d\u301d\u301e\u301f\ufe41\ufe42\uff02\uff62\uff63"
_SINGLE = "\u02bb\u02bc\u2018\u2019\u201a\u201b\u2039\u203a\u300e\u300f\ufe43\ufe44\uff07"
QUOTES = str.maketrans(dict.fromkeys(_DOUBLE, '"') | dict.fromkeys(_SINGLE, "'"))
"""Straight form of quotation marks and apostrophes."""

_STOPS = ".\u0589\u06d4\u0964\u104b\u1362\u166e\u17d4\u1803\u3002\ufe12\ufe52\uff0e\uff61"
_FULL_STOP = re.compile(rf"(?<=[^\s/\\{_STOPS}])[{_STOPS}]\Z")


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


def wording(text: str) -> str:
    """Text without what spellings of one lesson differ in.

    These are the canonical form of characters (NFC), the width of blanks, the style of quotation marks and a final full
    stop. Letter case and compatibility forms stay, since they can change the meaning: ``ls -r`` is not ``ls -R``. So
    does a point that ends no sentence, as in ``cd ..`` and ``git add .``.
    """
    if not text.isascii():
        text = normalize("NFC", text).translate(QUOTES)
    return _FULL_STOP.sub("", " ".join(text.split()))


def entry_id(scope: str, strategy: str) -> str:
    """First 12 hex digits of the SHA-256 of scope and wording: all spellings of one lesson have the same id."""
    return hashlib.sha256(f"{scope}\n{wording(strategy)}".encode()).hexdigest()[:12]


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
        bound: bound of the gain over all measurements of the lesson's life, see ``coevo.memory.admission.evidence``:
            of a candidate the lower one, of an entry left out the upper one. None where it was not asked for, and where
            too many pairs were lost.
        seen_share: of a candidate on trial, the share of the episodes with it in the bank that saw it in a prompt. None
            where it was replayed.
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
    bound: float | None = None
    seen_share: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the difference, by Student's t; equal gains have one too, see ``of_gains``.

        Rewards are taken to be at most 1 apart, or as far as the mean rewards show.
        """
        most = max(1.0, abs(self.reward_with), abs(self.reward_without), abs(self.difference))
        found = of_gains(self.difference, self.stderr, self.pairs, most)
        return found.low, found.high

    @property
    def significant(self) -> bool:
        """False if the interval contains the threshold: the verdict could be the opposite."""
        low, high = self.interval
        return not low <= self.delta <= high

    @property
    def requirement(self) -> str:
        """The condition of admission, and what the candidates have, in words."""
        if self.bound is not None:
            return f"needs a lower bound above {self.delta:g}; has {self.bound:+.3f}"
        if self.difference > self.delta and not self.admitted:
            return f"needs a lower bound above {self.delta:g}; has none, since too many pairs were lost"
        return f"needs a difference above {self.delta:g}; has {self.difference:+.3f}"
