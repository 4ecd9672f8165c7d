"""Entries by the id that a user types; a misspelt one gets a suggestion."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coevo.configs.errors import CoevoError, unknown

if TYPE_CHECKING:
    from coevo.memory.bank.bank import BankView


def find_entry(text: str, ids: Iterable[str]) -> str:
    """The one id that is ``text`` or begins with it.

    Raises:
        CoevoError: none does, or several do.
    """
    known = sorted(set(ids))
    found = [text] if text in known else [each for each in known if text and each.startswith(text)]
    if not found:
        raise CoevoError(unknown("entry", text, known, "`coevo bank show` lists the ids"))
    if len(found) > 1:
        raise CoevoError(f"{text!r} begins {len(found)} ids, among them {found[0]} and {found[1]}: write more of it")
    return found[0]


def ids_of(bank: "BankView") -> set[str]:
    """Ids of all entries that a bank holds, retired ones included, or has ever judged."""
    judged = (candidate.id for batch in bank.judged() for candidate in batch.candidates)
    return {entry.id for entry in bank.entries()}.union(judged)
