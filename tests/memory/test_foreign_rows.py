"""Generated files from elsewhere: each is read as exactly what it holds, or refused in one line that names the row."""

import json
import tracemalloc
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.foreign_rows import broken, line, seeded, spoiled, valid

from coevo.memory.exchange.exchange import read_entries
from coevo.records.arrow import ENTRIES
from coevo.utilities.errors import CoevoError

NO_UTF8 = (b"\xff\xfe", b"\xed\xa0\x80", b"a\xc3", b"\xf5\x80\x80\x80")
"""Bytes in a column of text; the second is half of a surrogate pair."""
FEW, ALL = 300, 10_000
"""Rows in the quick tier and in the soak."""
PARTS = (FEW, pytest.param(ALL, marks=pytest.mark.soak))


def refusal(path):
    with pytest.raises(CoevoError) as caught:
        read_entries(path)
    said = str(caught.value)
    assert said.isascii()
    assert said.isprintable()
    assert len(said) < 500 + len(str(path))
    return said.removeprefix(str(path)).lstrip(" :")


def plain(rows):
    return [json.loads(json.dumps(asdict(each))) for each in rows]


@pytest.mark.parametrize("rows", PARTS)
def test_lines_are_read_exactly_or_refused_by_number_and_field(rows, tmp_path):
    draws, path, made = seeded("lines"), tmp_path / "bank.jsonl", 0
    tracemalloc.start()
    while made < rows:
        good = [valid(draws, made + n) for n in range(draws.randrange(1, 8))]
        made += len(good) + 1
        path.write_bytes(b"".join(map(line, good)))
        assert plain(read_entries(path).rows.values()) == good
        at, (bad, field) = draws.randrange(len(good) + 1), spoiled(draws, valid(draws, made))
        path.write_bytes(b"".join(map(line, [*good[:at], bad, *good[at:]])))
        said = refusal(path)
        assert said.startswith(f"line {at + 1}: "), (said, field, bad[field])
        assert f"{field}" in said or said.startswith(f"line {at + 1}: id = "), (said, field, bad[field])
        path.write_bytes(b"".join([*map(line, good[:at]), broken(draws, good[0]), *map(line, good[at:])]))
        assert refusal(path).startswith(f"line {at + 1}")
        path.write_bytes(b"".join(map(line, [*good, good[at % len(good)]])))
        assert refusal(path).startswith(f"line {len(good) + 1}: id = ")
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


def table(rows):
    return pa.Table.from_pylist(rows, schema=ENTRIES)


def column(rows, name, values, kind):
    found = table(rows)
    at = found.schema.get_field_index(name)
    return found.set_column(at, pa.field(name, kind), pa.array(values, kind))


def bytes_as_text(rows, name, at, value):
    raw = [row[name].encode() for row in rows]
    raw[at] = value
    return table(rows).set_column(ENTRIES.get_field_index(name), name, pa.array(raw, pa.binary()).view(pa.string()))


def other_layout(draws, rows):
    """A table that is no bank: another type of a column, a nested one, one more, one less, none."""
    name = draws.choice(("strategy", "created", "sources"))
    nested = pa.struct([("a", pa.list_(pa.struct([("b", pa.string())])))])
    ways = (
        lambda: column(rows, name, [{"a": [{"b": "x"}]}] * len(rows), nested),
        lambda: column(rows, "created", [float("nan")] * len(rows), pa.float64()),
        lambda: column(rows, "created", [2**60] * len(rows), pa.int64()),
        lambda: column(rows, "strategy", [b"\x00"] * len(rows), pa.binary()),
        lambda: column(rows, "strategy", [row["strategy"] for row in rows], pa.large_string()),
        lambda: column(rows, "sources", [[1, 2]] * len(rows), pa.list_(pa.int64())),
        lambda: table(rows).drop_columns([name]),
        lambda: table(rows).append_column("note", pa.array([1] * len(rows))),
        lambda: table(rows).append_column(name, table(rows)[name]),
        lambda: table(rows).rename_columns([f"{each}\x1b[2J" for each in ENTRIES.names]),
        lambda: pa.table({"x": [1]}),
    )
    return draws.choice(ways)()


@pytest.mark.parametrize("rows", PARTS)
def test_parquet_files_are_read_exactly_or_refused_by_row(rows, tmp_path):
    """Few files: reading a footer takes a process of its own."""
    draws, path, made, size = seeded("parquet"), tmp_path / "bank.parquet", 0, rows // (1 if rows == FEW else 8)

    def write(content, **how):
        pq.write_table(content, path, row_group_size=draws.choice((1, 7, 100, size)), **how)

    while made < rows:
        good = [valid(draws, made + n) for n in range(size)]
        made += size
        at = draws.randrange(size)
        write(table(good), use_dictionary=draws.choice((True, False)), compression=draws.choice(("zstd", "snappy")))
        assert plain(read_entries(path).rows.values()) == good
        whole = path.read_bytes()
        path.write_bytes(whole[: draws.randrange(1, len(whole))])
        assert "not readable as Parquet" in refusal(path)
        name = draws.choice(("strategy", "condition", "example", "keywords", "scope", "zone", "level", "id", "split"))
        write(bytes_as_text(good, name, at, draws.choice(NO_UTF8)))
        assert refusal(path).startswith(f"row {at + 1}: {name} = ")
        while True:
            bad, field = spoiled(draws, good[at])
            try:
                content = table([*good[:at], bad, *good[at + 1 :]])
            except (pa.ArrowException, UnicodeEncodeError, OverflowError):
                continue
            written = content[field][at].as_py()
            if (type(written), written) == (type(bad[field]), bad[field]):  # pyarrow makes 1 of true, which is right
                break
        write(content)
        assert field in refusal(path)
        write(other_layout(draws, good))
        refusal(path)
