"""Rows of files at the limits: the largest that is read, and the next, which is refused with its place."""

import json
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.batches import entry

from coevo.memory.exchange import exchange
from coevo.memory.exchange.exchange import json_rows, parquet_rows
from coevo.records.arrow import ENTRIES
from coevo.utilities.errors import CoevoError

MEBIBYTE = 2**20


def made(**changes):
    return json.loads(json.dumps(asdict(entry()))) | changes


def parquet(path, *found):
    """A file with groups of two rows."""
    pq.write_table(pa.Table.from_pylist(found, schema=ENTRIES), path, row_group_size=2)
    return path


def test_a_line_has_at_most_a_mebibyte(tmp_path):
    path, line = tmp_path / "bank.jsonl", json.dumps(made()).encode()
    path.write_bytes(line.ljust(MEBIBYTE - 1) + b"\n" + line)
    assert list(json_rows(path)) == [(f"{path} line 1", made()), (f"{path} line 2", made())]
    path.write_bytes(line + b"\n" + line.ljust(MEBIBYTE) + b"\n")
    with pytest.raises(CoevoError, match=r"line 2: is longer than 1048576 bytes"):
        list(json_rows(path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "x" * 8000}, ""),
        ({"strategy": "x" * 8001}, "row 4: strategy has 8001 bytes: shorten it to 2000 characters"),
        ({"split": "x" * 8001}, "row 4: split has 8001 bytes"),
        ({"sources": ["x" * 2000]}, ""),
        ({"sources": ["x" * 2001]}, "rows 3 to 4: sources hold no episode ids"),
    ],
)
def test_texts_of_so_many_bytes_are_decoded_and_no_longer_ones(changes, said, tmp_path):
    found = [made(), made(), made(), made(**changes)]
    path = parquet(tmp_path / "bank.parquet", *found)
    if said:
        with pytest.raises(CoevoError, match=said):
            list(parquet_rows(path))
    else:
        assert list(parquet_rows(path)) == [(f"{path} row {n}", row) for n, row in enumerate(found, 1)]


def test_entries_without_a_source_are_read(tmp_path):
    path = parquet(tmp_path / "bank.parquet", made(sources=[]))
    assert [row for _, row in parquet_rows(path)] == [made(sources=[])]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((67_108_864, 2_000_000), ""),
        ((67_108_865, 1), "is larger than 67108864 bytes when decompressed"),
        ((1, 2_000_001), "a column holds more than 2000000 values"),
    ],
)
def test_a_file_that_its_footer_says_is_too_large_is_not_decoded(sizes, said, tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "sizes", lambda path: sizes)
    path = parquet(tmp_path / "bank.parquet", made())
    if said:
        with pytest.raises(CoevoError, match=said):
            next(parquet_rows(path))
    else:
        assert len(list(parquet_rows(path))) == 1
