"""Figures of what became of a bank."""

from collections.abc import Iterable, Set


def counts(before: Set[str], after: Set[str], proposed: Iterable[str]) -> dict[str, float]:
    """How the bank has changed, from the ids of its entries before and after, and of the candidates."""
    return {
        "bank/admitted": float(len(after - before)),
        "bank/retired": float(len(before - after)),
        "bank/rejected": float(sum(entry not in after for entry in proposed)),
        "bank/size": float(len(after)),
    }
