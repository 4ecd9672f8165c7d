"""Retirement of entries by a person: its record, and the ids that may not enter again automatically."""

from collections.abc import Iterable

from coevo.memory.bank.bank import BankView
from coevo.memory.bank.change import Ruling
from coevo.memory.validate import shortened
from coevo.records.entry import Entry, entry_id
from coevo.records.inert import flaw
from coevo.utilities.errors import CoevoError

RETIRED = "retired"
"""Outcome of a ruling by which a person retired an entry."""

MAX_REASON_CHARS = 300
"""Most characters of a reason."""
MAX_NAME_CHARS = 100
"""Most characters of a person's name."""


def ruling(entry: Entry, reason: str, by: str, revision: int) -> Ruling:
    """Record of a person's decision; its line is empty, since no operation proposed it.

    Raises:
        CoevoError: reason or name is empty, too long or not printable.
    """
    said = f"{_checked('--reason', reason, MAX_REASON_CHARS)} (retired by {_checked('--by', by, MAX_NAME_CHARS)})"
    return Ruling(f"{revision:08d}/000000", revision, entry.scope, "", RETIRED, said, (entry.id,))


def reasons(rulings: Iterable[Ruling]) -> dict[str, str]:
    """Reasons of retirements by entry id; the latest counts."""
    return {entry: each.reason for each in rulings if each.outcome == RETIRED for entry in each.entries}


def barred(bank: BankView) -> frozenset[str]:
    """Ids that admission must not add again: of entries retired by a person, and of their texts at that time.

    Entries that were imported again are active and not included.
    """
    named = reasons(bank.operations())
    gone = [entry for entry in bank.entries() if entry.id in named and not entry.active] if named else []
    return frozenset(name for entry in gone for name in (entry.id, entry_id(entry.scope, entry.strategy)))


def _checked(option: str, text: str, most: int) -> str:
    line = text.strip()
    if not line:
        raise CoevoError(f"{option} = {shortened(text)}: is empty: write one line of text")
    if len(line) > most:
        raise CoevoError(f"{option} = {shortened(text)}: has {len(line)} characters: shorten it to {most}")
    if flaw(line):
        raise CoevoError(f"{option} = {shortened(text)}: holds a character that is not printable: write one plain line")
    return line
