"""What became of a bank between two revisions."""

from collections.abc import Iterable
from dataclasses import dataclass

from records.entry import Entry


@dataclass(frozen=True, slots=True)
class BankDiff:
    """Differences between the active entries of two versions, each list by id.

    Attributes:
        added: active only in the new one.
        edited: (old, new) of entries active in both with other content.
        retired: active only in the old one, as they were there.
    """

    added: tuple[Entry, ...]
    edited: tuple[tuple[Entry, Entry], ...]
    retired: tuple[Entry, ...]


def diff(old: Iterable[Entry], new: Iterable[Entry]) -> BankDiff:
    """Compare two lists of entries with unique ids; retired entries in them count as absent."""
    before = {entry.id: entry for entry in old if entry.active}
    after = {entry.id: entry for entry in new if entry.active}
    common = sorted(before.keys() & after.keys())
    return BankDiff(
        added=tuple(after[name] for name in sorted(after.keys() - before.keys())),
        edited=tuple((before[name], after[name]) for name in common if before[name] != after[name]),
        retired=tuple(before[name] for name in sorted(before.keys() - after.keys())),
    )
