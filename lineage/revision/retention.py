"""Revisions that a run keeps whole, with reasons: git tags, the bank's versions and the cache follow this one list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coevo.lineage.revision.manifest import Manifest

NO_RULE = "all kept: give --keep-last or --keep-every"
"""Reason to keep a revision that nothing else requires."""


@dataclass(frozen=True)
class RetentionRule:
    """Revisions to keep in addition to the required ones; all of them where it has no number.

    Attributes:
        last: number of revisions at the end; None for no such rule.
        every: revisions whose number is a multiple of this; None for no such rule.
    """

    last: int | None = None
    every: int | None = None

    def reasons(self, revision: int, head: int) -> list[str]:
        """Reasons of the rule to keep a revision; empty if it does not."""
        found = [f"last {self.last}"] if self.last is not None and revision > head - self.last else []
        return found + ([f"every {self.every}"] if self.every is not None and revision % self.every == 0 else [])


@dataclass(frozen=True)
class RunRetention:
    """State of a run that decides together with the rule.

    Attributes:
        history: every revision, oldest first.
        retained: numbers of the revisions that are kept whole now.
        names: revision by tag that a user gave.
        published: the last revision that MLflow has; -1 for none.
    """

    history: Sequence[Manifest]
    retained: Sequence[int]
    names: Mapping[str, int]
    published: int


def reasons(state: RunRetention, rule: RetentionRule) -> dict[int, list[str]]:
    """Reasons to keep each revision that is whole now; one without a reason may be dropped."""
    history = state.history
    if not history:
        return {}
    head = history[-1]
    found: dict[int, list[str]] = {revision: [] for revision in state.retained}
    _note(found, [0], "reference policy")
    _note(found, [head.revision], "last revision")
    for name, revision in sorted(state.names.items()):
        _note(found, [revision], f"tag {name}")
    if head.state["config"]["bank"] is not None:
        waiting = trail_since(history.__getitem__, head, head.state["fired"])
        _note(found, waiting, "episodes that the writer has yet to see")
    _note(found, range(state.published + 1, len(history)), "not published")
    if rule == RetentionRule():
        return {revision: why or [NO_RULE] for revision, why in found.items()}
    return {revision: [*why, *rule.reasons(revision, head.revision)] for revision, why in found.items()}


def earlier(manifest: Callable[[int], Manifest], last: Manifest) -> Iterator[Manifest]:
    """Revisions before the last one, newest first, along the line that led to it."""
    while (before := last.parent if last.restored_from is None else last.restored_from) is not None:
        last = manifest(before)
        yield last


def trail_since(manifest: Callable[[int], Manifest], head: Manifest, fired: int) -> list[int]:
    """Revisions after ``fired`` with episodes of their own, oldest first, along the line that led to ``head``."""
    trail: list[int] = []
    while head.revision > fired:
        restored = head.restored_from
        if restored is None:
            trail.append(head.revision)
        before = head.parent if restored is None else restored
        assert before is not None
        head = manifest(before)
    return trail[::-1]


def ranges(revisions: Sequence[int]) -> str:
    """Ascending numbers in short form: ``0, 4, 8 to 12``; ``none`` for none."""
    spans: list[list[int]] = []
    for revision in revisions:
        if spans and revision == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], revision]
        else:
            spans.append([revision, revision])
    shown = (str(low) if low == high else f"{low}{', ' if high == low + 1 else ' to '}{high}" for low, high in spans)
    return ", ".join(shown) or "none"


def _note(found: dict[int, list[str]], revisions: Sequence[int], why: str) -> None:
    for revision in revisions:
        if revision in found:
            found[revision].append(why)
