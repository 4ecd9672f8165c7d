"""Rows become entries up to every bound, and are refused beyond it."""

from dataclasses import asdict

import pytest
from support.batches import entry

from coevo.memory.source_tasks import parse
from coevo.memory.validate import shortened, vet
from coevo.records.entry import Entry
from coevo.utilities.errors import CoevoError

SOURCE = "1/rollout/t/0"
ROW = {**asdict(entry()), "sources": [SOURCE]}


@pytest.mark.parametrize(
    "changes",
    [
        {"created": 0, "edited": 0},
        {"edited": 2**31 - 1},
        {"created": 2**31 - 1, "edited": 2**31 - 1},
        {"sources": []},
        {"sources": [SOURCE] * 1000},
        {"sources": [f"import-0123456789ab/{SOURCE}"]},
        {"condition": "", "example": "x" * 2000},
        {"zone": "warning", "level": "pattern"},
    ],
    ids="-".join,
)
def test_a_row_at_a_bound_is_an_entry(changes):
    row = ROW | changes
    assert vet(row, "here") == Entry(**{**row, "sources": tuple(row["sources"])})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"created": 2**31}, "created = 2147483648: is no revision: write a whole number"),
        ({"edited": 2**31}, "edited = 2147483648: is no revision: write a whole number"),
        ({"retired": -2}, "retired = -2: is no revision: write a whole number"),
        ({"retired": 0}, "retired = 0: is out of use"),
        ({"created": -1, "edited": -1}, "created = -1: is no revision: write 0 or more"),
        ({"edited": 0}, "edited = 0: comes before created = 1: write 1 or more"),
        ({"sources": [SOURCE] * 1001}, f"sources = ['{SOURCE}', '{SOURCE}']: has 1001 items: keep at most 1000"),
        ({"sources": [SOURCE, "1/rollout/t"]}, "sources[1] = '1/rollout/t': is no episode id"),
        ({"example": "x" * 2001}, "has 2001 characters: shorten it to 2000"),
        ({"split": "seen-houses"}, "split = 'seen-houses': is no training split"),
        ({"split": "validation"}, "split = 'validation': is no training split"),
        ({"id": ""}, "id = '': is not the hash"),
        ({"id": "z"}, "id = 'z': is not the hash"),
    ],
)
def test_a_row_beyond_a_bound_is_refused_by_field(changes, says):
    with pytest.raises(CoevoError) as caught:
        vet(ROW | changes, "here")
    assert str(caught.value).startswith("here: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, "7"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 56}..."),
        ("x" * 1000, f"'{'x' * 56}..."),
        ("é" * 20, "'" + r"\xe9" * 14 + "..."),
        ([0] * 20, "[" + "0, " * 19 + "0]"),
    ],
)
def test_a_message_has_sixty_characters_of_a_value(value, shown):
    assert shortened(value) == shown
    assert len(shown) <= 60


def test_of_several_errors_in_a_list_the_first_is_named():
    with pytest.raises(CoevoError, match=r"source tasks cannot be read: 0\.kind: Field required; roll back"):
        parse('[{"id": "a"}, {"id": "b"}]')
