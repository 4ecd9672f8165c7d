"""Entries that a person takes out of a bank: how that is recorded, and that they do not enter again by themselves."""

from collections.abc import Iterable, Set
from dataclasses import replace

from configs.errors import CoevoError
from memory.change import Ruling
from memory.store import BankView
from memory.vetting import shortened
from memory.writers.base import Proposal
from records.entry import Entry, entry_id

RETIRED = "retired"
"""Outcome of a ruling with which a person took an entry out."""

LONGEST_REASON = 300
"""Most characters of a reason."""
LONGEST_NAME = 100
"""Most characters of a person's name."""


def ruling(entry: Entry, reason: str, by: str, revision: int) -> Ruling:
    """The record of a person's decision; no operation proposed it, so its line is empty.

    Raises:
        CoevoError: reason or name is empty, too long or not printable.
    """
    said = f"{_checked('--reason', reason, LONGEST_REASON)} (retired by {_checked('--by', by, LONGEST_NAME)})"
    return Ruling(f"{revision:08d}/000000", revision, entry.scope, "", RETIRED, said, (entry.id,))


def reasons(rulings: Iterable[Ruling]) -> dict[str, str]:
    """By entry, why a person took it out; the last time counts."""
    return {entry: each.reason for each in rulings if each.outcome == RETIRED for entry in each.entries}


def barred(bank: BankView) -> frozenset[str]:
    """Ids under which no lesson enters by itself: of entries that a person took out, and of what they said then.

    An entry that was imported again is in use, and not among them.
    """
    named = reasons(bank.operations())
    gone = [entry for entry in bank.entries() if entry.id in named and not entry.active] if named else []
    return frozenset(name for entry in gone for name in (entry.id, entry_id(entry.scope, entry.strategy)))


def allowed(proposal: Proposal, barred: Set[str]) -> Proposal:
    """The proposal without candidates that say what a person took out."""
    return replace(proposal, entries=tuple(entry for entry in proposal.entries if entry.id not in barred))


def _checked(option: str, text: str, most: int) -> str:
    line = text.strip()
    if not line:
        raise CoevoError(f"{option} = {shortened(text)}: is empty: write one line of text")
    if len(line) > most:
        raise CoevoError(f"{option} = {shortened(text)}: has {len(line)} characters: shorten it to {most}")
    if not line.isprintable():
        raise CoevoError(f"{option} = {shortened(text)}: holds a character that is not printable: write one plain line")
    return line
