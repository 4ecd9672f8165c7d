"""Tables: equal rows are one table in every format, and whatever is no table is one line that says why."""

import csv
import datetime
import decimal
import json
import os
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.row_tables import ROWS, written

from coevo.envs.rows.task_table import MAX_TABLE_ROWS, TableError, load_table, table_of


def refusal(path):
    with pytest.raises(TableError) as caught:
        load_table(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_equal_rows_are_one_table_in_every_format(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "tasks.parquet")
    with (tmp_path / "tasks.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    backwards = written(tmp_path, [dict(reversed(row.items())) for row in ROWS], "other.jsonl")
    paths = (written(tmp_path), tmp_path / "tasks.parquet", tmp_path / "tasks.csv", backwards)
    tables = [load_table(str(path)) for path in paths]
    assert [table.rows for table in tables] == [tuple(ROWS)] * 4
    assert len({table.digest for table in tables}) == 1


def test_a_csv_file_keeps_its_texts(tmp_path):
    (tmp_path / "a.csv").write_text('prompt,answer\n"one, two\nthree",007\n\n"a",""\n', encoding="utf-8-sig")
    assert load_table(str(tmp_path / "a.csv")).rows == (
        {"prompt": "one, two\nthree", "answer": "007"},
        {"prompt": "a", "answer": None},
    )


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 1, 2, 3), "2024-02-29T01:02:03"),
        (datetime.time(1, 2), "01:02:00"),
        (pd.Timestamp("2024-02-29", tz="UTC"), "2024-02-29T00:00:00+00:00"),
        (decimal.Decimal("0.10"), "0.10"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1, 2]]), [[1, 2]]),
        (torch.tensor([1.5]), [1.5]),
        ({"when": (datetime.date(2024, 1, 1), np.int8(1))}, {"when": ["2024-01-01", 1]}),
        (np.datetime64("2024-01-01", "ns"), "2024-01-01T00:00:00"),
        (np.datetime64("2024-01-01T00:00:00.000000001"), "2024-01-01T00:00:00.000000001"),
        (np.datetime64("2024-01-01"), "2024-01-01"),
        (np.datetime64("12000-01-01"), "12000-01-01"),
        (np.array("2024-01-01", "datetime64[s]"), "2024-01-01T00:00:00"),
        (
            np.array([["2024-01-01"], ["2024-02-29"]], "datetime64[ns]"),
            [["2024-01-01T00:00:00"], ["2024-02-29T00:00:00"]],
        ),
        (np.array([datetime.date(2024, 1, 1), decimal.Decimal("0.1"), 1], object), ["2024-01-01", "0.1", 1]),
        (pd.Series(pd.to_datetime(["2024-01-01"])), ["2024-01-01T00:00:00"]),
        (np.array([np.int64(1704067200000000000)]), [1704067200000000000]),
    ],
)
def test_values_that_datasets_loads_become_values_of_json(value, kept):
    (row,) = table_of([{"prompt": "a", "value": value}], "rows").rows
    assert (row["value"], json.loads(json.dumps(row))) == (kept, row)


def test_another_order_another_value_and_another_row_are_other_tables():
    base = table_of(ROWS, "rows").digest
    others = ([*ROWS[1:], ROWS[0]], [{**ROWS[0], "answer": 1}, *ROWS[1:]], [*ROWS, ROWS[0]])
    assert base == table_of(map(dict, ROWS), "again").digest
    assert len({base, *(table_of(rows, "rows").digest for rows in others)}) == 4


def test_what_datasets_saves_is_read_without_it(tmp_path):
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_list(ROWS)
    whole.select(range(10, 20)).save_to_disk(tmp_path / "one")
    assert load_table(str(tmp_path / "one")).rows == tuple(ROWS[10:20])
    splits = {"train": whole.select(range(5)), "test": whole.select(range(5, 8))}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "several")
    rows = load_table(str(tmp_path / "several")).rows
    assert [row["split"] for row in rows] == ["train"] * 5 + ["test"] * 3
    assert rows[6] == {"split": "test", **ROWS[6]}


def test_a_changed_file_is_read_again(tmp_path):
    path = written(tmp_path)
    before = load_table(str(path))
    assert load_table(str(path)) is before
    written(tmp_path, ROWS[:5])
    os.utime(path, ns=(1, 1))
    assert len(load_table(str(path)).rows) == 5


def test_a_file_of_a_package_is_found_without_importing_it():
    assert len(load_table("coevo.envs.rows:lockers.jsonl").rows) == 120
    assert "there is no package nobody" in refusal("nobody:x.jsonl")


BAD_LINES = {
    '{"prompt": NaN}': "line 1: no JSON object (NaN is no number of JSON)",
    '{"prompt": "a"}\n{"prompt": ': "line 2: no JSON object",
    '{"prompt": "a", "prompt": "b"}': "a name stands in it twice",
    "[1]": "row 1: list is no row: write an object with a value per column",
    '{"prompt": "\\ud800"}': "column 'prompt' has half of a surrogate pair",
    '{"": "a"}': "column '' is no name of a column",
    '{"a": 1e999}': "column 'a' is NaN, infinite or too large",
    '{"a": ' + "[" * 30 + "]" * 30 + "}": "column 'a' is nested more than 20 levels deep",
    '{"a": ' + "[" * 100_000: "no JSON object",
    '{"a": ' + "9" * 5000 + "}": "no JSON object",
    "": "it has no row",
}


@pytest.mark.parametrize("text", BAD_LINES, ids=lambda text: text[:30])
def test_a_line_that_is_no_row_is_named(tmp_path, text):
    (tmp_path / "bad.jsonl").write_text(text)
    assert BAD_LINES[text] in refusal(tmp_path / "bad.jsonl")


BAD_CSV = {
    "a,a\n1,2\n": "line 1: it names a column twice",
    "a,b\n1,2\n1\n": "line 3: it has 1 values for 2 columns",
    'a,b\n"1,2\n': "not readable",
    "": "it has no row",
}


@pytest.mark.parametrize("text", BAD_CSV)
def test_a_csv_file_that_is_no_table_is_named(tmp_path, text):
    (tmp_path / "bad.csv").write_text(text)
    assert BAD_CSV[text] in refusal(tmp_path / "bad.csv")


def test_files_that_are_no_table_are_refused(tmp_path):
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        (tmp_path / name).write_bytes(b"\x80\x04\xff" + os.urandom(64))
        refusal(tmp_path / name)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(ROWS))
    assert "name a .jsonl, .csv or .parquet file" in refusal(tmp_path / "a.pkl")
    assert "put the table there, or continue the run as a branch" in refusal(tmp_path / "gone.jsonl")
    assert "no saved dataset" in refusal(tmp_path)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../a.jsonl"}]}))
    assert "is no name of a file" in refusal(tmp_path)
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["../.."]}))
    assert "is no name of a split" in refusal(tmp_path)


def test_values_that_are_no_json_are_refused_with_their_column(tmp_path):
    pq.write_table(pa.table({"prompt": ["a"], "data": [b"\x00"]}), tmp_path / "bytes.parquet")
    assert "row 1: column 'data' has a bytes: convert it to text or a number" in refusal(tmp_path / "bytes.parquet")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.datetime64("NaT", "ns"), "has a datetime64"),
        (np.array(["2024-01-01", "NaT"], "datetime64[ns]"), "has a datetime64"),
        (np.timedelta64(1, "ns"), "has a timedelta64"),
        (np.array([1, 2], "timedelta64[ns]"), "has a timedelta64"),
        (np.array([pd.NaT], object), "has a NaTType"),
    ],
)
def test_missing_dates_and_durations_do_not_become_numbers(value, says):
    with pytest.raises(TableError, match=f"column 'when' {says}: convert it"):
        table_of([{"when": value}], "rows")


def test_a_date_has_one_text_in_numpy_and_in_parquet(tmp_path):
    times = np.array(["2024-01-01", "2024-02-29T01:02:03.5", "2024-01-01T00:00:00.000000001"], "datetime64[ns]")
    pq.write_table(pa.table({"when": times}), tmp_path / "times.parquet")
    assert load_table(str(tmp_path / "times.parquet")).rows == table_of([{"when": each} for each in times], "rows").rows


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["prompt", "prompt"])
    pq.write_table(table, tmp_path / "twice.parquet")
    assert "two columns have the name 'prompt'" in refusal(tmp_path / "twice.parquet")
    with pa.OSFile(str(tmp_path / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    assert "two columns have the name 'prompt'" in refusal(tmp_path)
    with pytest.raises(TableError, match=f"more than {MAX_TABLE_ROWS} rows"):
        table_of(({"a": 1} for _ in range(MAX_TABLE_ROWS + 1)), "rows")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text() | st.integers(), inside, max_size=3),
    max_leaves=8,
)


@given(st.lists(ANY | st.dictionaries(st.text(), ANY, max_size=3), max_size=4))
def test_any_rows_are_a_table_with_a_hash_or_one_line(rows):
    try:
        table = table_of(rows, "rows")
    except TableError as error:
        assert "\n" not in str(error)
    else:
        assert len(table.digest) == 64
        assert list(table.rows) == rows


@given(st.binary(max_size=200), st.sampled_from((".jsonl", ".csv", ".parquet")))
def test_any_bytes_are_a_table_or_one_line(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("any") / f"table{suffix}"
    path.write_bytes(content)
    try:
        load_table(str(path))
    except TableError as error:
        assert "\n" not in str(error)
