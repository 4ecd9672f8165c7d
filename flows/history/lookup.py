"""Entries by the id that a user types; a misspelt one gets a suggestion."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coevo.utilities.errors import CoevoError, unknown

if TYPE_CHECKING:
    from coevo.memory.bank.bank import BankView


SHORTEST = 4
"""Fewest characters of an id that stand for it, where no other id begins with them."""


def find_entry(text: str, ids: Iterable[str]) -> str:
    """The one id that is ``text``, or begins with it if that has ``SHORTEST`` characters.

    Raises:
        CoevoError: none does, several do, or ``text`` is too short to stand for an id.
    """
    known = sorted(set(ids))
    if text in known:
        return text
    found = [each for each in known if text and each.startswith(text)]
    if len(found) == 1 and len(text) >= SHORTEST:
        return found[0]
    if found:
        named = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise CoevoError(f"{text!r} is no id of an entry, only the beginning of {named}: write more of it")
    raise CoevoError(unknown("entry", text, known, "`coevo bank show` lists the ids"))


def ids_of(bank: "BankView") -> set[str]:
    """Ids of all entries that a bank holds, retired ones included, or has ever judged."""
    judged = (candidate.id for batch in bank.judged() for candidate in batch.candidates)
    return {entry.id for entry in bank.entries()}.union(judged)
