"""A run stops between two revisions only, for the first bound that is reached, and says which."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from coevo.tasks.run.limit import GIB, Limit

PLACE = Path("/runs/first")


def limit(seconds=(), free=(), **bounds):
    """A limit that sees these clock readings, the first one when it is made, and these bytes on the disk."""
    clock, disk = iter(seconds or range(100)), iter(free or [10 * GIB] * 100)
    return Limit(clock=lambda: next(clock), free=lambda _: next(disk), **bounds)


def reasons(bounds, iterations):
    return [bounds.reached(PLACE, iteration) for iteration in iterations]


def test_without_bounds_it_never_ends():
    assert reasons(limit(), range(20)) == [None] * 20


def test_iterations_count_from_where_the_stretch_began():
    assert reasons(limit(iterations=4), [10, 12, 14]) == [None, None, "4 iterations are done, 4 were asked for"]


def test_a_revision_of_several_iterations_ends_beyond_the_bound_rather_than_in_its_middle():
    assert reasons(limit(iterations=3), [0, 2, 4])[:2] == [None, None]
    assert reasons(limit(iterations=3), [0, 2, 4])[2] == "4 iterations are done, 3 were asked for"


def test_no_revision_begins_that_would_end_after_the_time():
    said = reasons(limit(seconds=[0, 100, 1900, 2500], hours=1.0), range(3))
    assert said[:1] == [None]
    assert said[1] == "0.53 of 1 hours are over, and a revision took up to 30.0 minutes"
    assert reasons(limit(seconds=[0, 100, 1900, 2500], hours=1.1), range(3))[1] is None


def test_the_first_revision_begins_however_late_it_is():
    assert reasons(limit(seconds=[0, 9000, 9010], hours=0.5), [0, 1])[0] is None


def test_the_disk_must_hold_the_largest_revision_so_far_and_the_reserve():
    said = reasons(limit(free=[int(n * GIB) for n in (5.0, 4.5, 2.5)], reserve=GIB), range(3))
    assert said[:2] == [None, None]
    assert "has 2.50 GiB free, and 3.00 are needed" in said[2]


def test_a_disk_below_the_reserve_lets_nothing_begin():
    assert "0.50 GiB free, and 1.00 are needed" in limit(free=[GIB // 2], reserve=GIB).reached(PLACE, 7)


@pytest.mark.parametrize(("iteration", "may"), [(3, True), (4, False)])
def test_within_a_revision_the_next_iteration_may_always_begin(iteration, may):
    bounds = limit(iterations=1)
    stores = SimpleNamespace(paths=SimpleNamespace(root=PLACE))
    assert bounds.allows(SimpleNamespace(iteration=2, frozen_at=2, stores=stores, waiting=False))
    assert bounds.allows(SimpleNamespace(iteration=iteration, frozen_at=4, stores=stores, waiting=False)) is may
    assert (bounds.reason is None) is may


def test_nothing_begins_while_the_run_waits_for_a_person():
    stores = SimpleNamespace(paths=SimpleNamespace(root=PLACE))
    bounds, pending = limit(), SimpleNamespace(revision=3)
    assert not bounds.allows(SimpleNamespace(iteration=2, frozen_at=2, stores=stores, waiting=True, pending=pending))
    assert bounds.reason == "revision 2 waits for approval"
