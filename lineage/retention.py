"""Which revisions a run keeps whole, and why: one list that git tags, the bank's versions and the cache follow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lineage.manifest import Manifest


@dataclass(frozen=True)
class Rule:
    """What is kept besides the revisions that must be.

    Attributes:
        last: this many revisions at the end; None for no such rule.
        every: revisions whose number is a multiple of this; None for no such rule.
    """

    last: int | None = None
    every: int | None = None

    def reasons(self, revision: int, head: int) -> list[str]:
        """Why the rule keeps a revision; empty where it does not. Without any rule everything is kept."""
        if self.last is None and self.every is None:
            return ["no rule"]
        found = [f"last {self.last}"] if self.last is not None and revision > head - self.last else []
        return found + ([f"every {self.every}"] if self.every is not None and revision % self.every == 0 else [])


@dataclass(frozen=True)
class Standing:
    """What decides besides the rule.

    Attributes:
        history: every revision, oldest first.
        retained: numbers of those that are kept whole now.
        names: revision by tag that a user gave.
        published: the last revision that MLflow has; -1 for none.
    """

    history: Sequence[Manifest]
    retained: Sequence[int]
    names: Mapping[str, int]
    published: int


def reasons(standing: Standing, rule: Rule) -> dict[int, list[str]]:
    """For each revision that is kept whole now, why it stays; one without a reason may be dropped."""
    history = standing.history
    if not history:
        return {}
    head = history[-1]
    found: dict[int, list[str]] = {revision: [] for revision in standing.retained}
    _note(found, [0], "reference policy")
    _note(found, [head.revision], "head")
    for name, revision in sorted(standing.names.items()):
        _note(found, [revision], f"tag {name}")
    if head.state["config"]["bank"] is not None:
        waiting = trail_since(history.__getitem__, head, head.state["fired"])
        _note(found, waiting, "episodes that the writer has yet to see")
    _note(found, range(standing.published + 1, len(history)), "not published")
    return {revision: [*why, *rule.reasons(revision, head.revision)] for revision, why in found.items()}


def trail_since(manifest: Callable[[int], Manifest], head: Manifest, fired: int) -> list[int]:
    """Revisions after ``fired`` that have episodes of their own, oldest first, along what led to ``head``."""
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
    """Ascending numbers as people write them: ``0, 4, 8 to 12``; ``none`` for none."""
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
