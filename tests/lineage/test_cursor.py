"""How far a run is published."""

import pytest
from support.lineage_driver import lineage_in, play

from lineage.cursor import Cursor


@pytest.fixture
def cursor(place):
    return Cursor(place / "published.json")


def test_everything_is_unpublished_at_first(place, cursor):
    play(place, 3)
    assert cursor.read() == -1
    assert [manifest.revision for manifest in cursor.unpublished(lineage_in(place))] == [0, 1, 2]


def test_a_cursor_goes_on_where_it_was(place, cursor):
    play(place, 3)
    cursor.advance(1)
    again = Cursor(cursor.path)
    assert [manifest.revision for manifest in again.unpublished(lineage_in(place))] == [2]
    again.advance(2)
    assert cursor.unpublished(lineage_in(place)) == []


def test_a_cursor_is_open_from_the_first_advance_until_it_is_closed(cursor):
    assert not cursor.is_open()
    cursor.advance(0)
    assert cursor.is_open()
    cursor.close()
    assert (cursor.is_open(), cursor.read()) == (False, 0)
    cursor.advance(1)
    assert cursor.is_open()
