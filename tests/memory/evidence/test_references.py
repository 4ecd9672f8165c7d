"""Reference episodes: the latest of each outcome, by key."""

from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt

from coevo.memory.evidence.references import ReferencePair, References, reference_of
from coevo.records.task import BY_SCOPE, Task


def test_the_latest_of_each_outcome_are_kept():
    won = [attempt(str(n), SAFE, success=True) for n in range(3)]
    lost = attempt("3", STOVE, success=False)
    kept = References(BY_SCOPE, 2, [*won, lost])
    assert kept.of(lost.task.scope) == ReferencePair((won[1], won[2]), (lost,))
    assert kept.of("elsewhere") == ReferencePair()


def test_what_is_kept_gives_the_same_references_again():
    kept = References(BY_SCOPE, 2, [attempt(str(n), SAFE, success=n % 2 == 0) for n in range(5)])
    again = References(BY_SCOPE, 2, kept.episodes())
    assert list(again.episodes()) == list(kept.episodes())


def test_nothing_is_kept_of_nothing():
    assert list(References(BY_SCOPE, 0, [attempt("0", SAFE, success=True)]).episodes()) == []


def played(kind, number):
    """An attempt at the task with this number, of this kind."""
    return replace(attempt("0", SAFE, success=False), task=Task("a", kind, f"do {number}", "s", "train", {}))


SAME = [played("heat", 0), played("heat", 0)]
KIN = [played("heat", number) for number in range(1, 7)]
OTHERS = [played(kind, number) for number in range(7, 10) for kind in ("cool", "stack")]


@pytest.mark.parametrize(
    ("references", "nearest"),
    [
        ([*SAME, *KIN, *OTHERS], SAME[1]),
        ([*OTHERS, *KIN, SAME[0]], SAME[0]),
        ([*KIN, *OTHERS], KIN[-1]),
        ([*KIN[::-1], *OTHERS[::-1]], KIN[0]),
        (OTHERS, OTHERS[-1]),
        ([], None),
    ],
)
@pytest.mark.parametrize("success", [False, True])
def test_the_nearest_reference_is_the_latest_of_the_task_or_its_kind_with_the_other_outcome(
    references, nearest, success
):
    asked, alike = replace(SAME[0], success=success), (played("heat", 0),)
    pair = ReferencePair(alike, tuple(references)) if success else ReferencePair(tuple(references), alike)
    assert reference_of(asked, pair) is nearest
