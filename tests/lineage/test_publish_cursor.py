"""How far a run is published."""

import re

import pytest
from support.lineage_driver import lineage_in

from coevo.lineage.publish_cursor import Cursor
from coevo.utilities.errors import CoevoError


@pytest.fixture
def cursor(directory):
    return Cursor(directory / "published.json")


def test_everything_is_unpublished_at_first_and_a_cursor_goes_on_where_it_was(played, cursor):
    lineage = lineage_in(played)
    assert cursor.read() == -1
    assert [manifest.revision for manifest in cursor.unpublished(lineage)] == [0, 1, 2, 3]
    cursor.advance(1)
    again = Cursor(cursor.path)
    assert [manifest.revision for manifest in again.unpublished(lineage)] == [2, 3]
    again.advance(3)
    assert cursor.unpublished(lineage) == []


def test_a_cursor_is_open_from_the_first_advance_until_it_is_closed(cursor):
    assert not cursor.is_open()
    cursor.advance(0)
    assert cursor.is_open()
    cursor.close()
    assert (cursor.is_open(), cursor.read()) == (False, 0)
    cursor.advance(1)
    assert cursor.is_open()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "7",
        "[]",
        *(f'{{"published": {value}}}' for value in ("-2", "-3", "1e400", "NaN", "1.5", "true", "null", '"1"')),
        "\ud800",
    ],
)
def test_a_damaged_cursor_is_one_line_with_its_remedy(played, directory, cursor, text):
    cursor.path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for asked in (cursor.read, cursor.is_open, cursor.close, lambda: cursor.unpublished(lineage_in(played))):
        with pytest.raises(CoevoError) as refused:
            asked()
        assert str(refused.value) == f"{cursor.path} is damaged: repair it with `coevo fsck {directory.name} --repair`"


@pytest.mark.parametrize(("begun", "held"), [(True, "the last is 3"), (False, "there is none yet")])
def test_a_cursor_ahead_of_the_history_leaves_no_revision_out_unsaid(played, directory, cursor, begun, held):
    cursor.advance(9)
    said = re.escape(f"{cursor.path} says that revision 9 is published, but {held}: repair it with `coevo fsck ")
    for asked in (cursor.check, cursor.unpublished):
        with pytest.raises(CoevoError, match=said):
            asked(lineage_in(played if begun else directory))
