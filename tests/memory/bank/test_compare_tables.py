"""Rows are compared by value, column by column."""

import pyarrow as pa
import pytest

from coevo.memory.bank.diff import changed_rows, differing, split

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("names", pa.list_(pa.string())),
        ("parts", pa.list_(pa.struct([("text", pa.string()), ("tags", pa.list_(pa.string()))]))),
    ]
)
ROW = {"id": "a", "n": 1, "names": ["x", "yz"], "parts": [{"text": "t", "tags": ["u", "v"]}, {"text": "", "tags": []}]}


def table(*rows):
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def named(name, **changes):
    return {**ROW, "id": name, **changes}


@pytest.mark.parametrize(
    "change",
    [
        {"id": "b"},
        {"n": 2},
        {"names": ["xy", "z"]},
        {"names": ["x"]},
        {"parts": ROW["parts"][:1]},
        {"parts": [{"text": "t", "tags": ["u", "w"]}, {"text": "", "tags": []}]},
        {"parts": [{"text": "t", "tags": ["u"]}, {"text": "", "tags": ["v"]}]},
    ],
)
def test_any_value_makes_a_row_differ_and_only_that_row(change):
    rows = [{**ROW, "names": []}, ROW, {**ROW, "parts": []}]
    changed = [rows[0], {**ROW, **change}, rows[2]]
    assert differing(table(*rows), table(*changed)).tolist() == [False, True, False]
    assert not differing(pa.concat_tables([table(row) for row in rows]), table(*rows)).any()


def test_changed_rows_are_edited_then_new_ones_and_the_last_of_equal_ids():
    held = table(named("a"), named("b"), named("c"))
    wanted = table(named("d", n=3), named("b", n=3), named("a"), named("d", n=4), named("c", n=5), named("c"))
    assert changed_rows(held, wanted).to_pylist() == [named("b", n=3), named("d", n=4)]


def test_empty_tables_are_compared_too():
    some = table(named("a"))
    assert changed_rows(table(), some).equals(some)
    assert changed_rows(some, table()).num_rows == 0
    assert [part.num_rows for part in split(some, table())] == [0, 0, 0, 1]
    assert [part.num_rows for part in split(table(), some)] == [1, 0, 0, 0]
