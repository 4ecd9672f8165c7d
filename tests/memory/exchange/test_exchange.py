"""Banks as files: what is written comes back, and what is not an entry is refused in one line that says why."""

import json
import tracemalloc
from dataclasses import asdict, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.batches import entry

from coevo.memory.bank.content_hash import content_hash
from coevo.memory.exchange import exchange
from coevo.memory.exchange.exchange import MAX_FILE_BYTES, MAX_LINE_BYTES, read_entries, write_entries
from coevo.records.arrow import ENTRIES, entries_to_table
from coevo.records.entry import MAX_TEXT_CHARS, entry_id
from coevo.utilities.errors import CoevoError

BANK = (entry(), entry("plate in drawer", condition='caf\u00e9 "x"', example="\u65e5\u672c", sources=()))
GOOD = asdict(BANK[0])
POOLS = []
"""Kept: what was allocated from a pool may outlive its test."""


def named(**changes):
    """A row whose id is right, whatever else is not."""
    row = GOOD | changes
    return {**row, "id": changes.get("id", entry_id(row["scope"], row["strategy"]))}


def refusal(path):
    with pytest.raises(CoevoError) as caught:
        read_entries(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 400 + len(str(path))
    return str(caught.value).removeprefix(f"{path}").strip(": ")


def lines(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".JSONL", ".Parquet"])
def test_what_is_written_comes_back(suffix, tmp_path):
    path = tmp_path / f"bank{suffix}"
    assert write_entries(BANK, path) == 2
    read = read_entries(path)
    assert content_hash(entries_to_table(read.rows.values())) == content_hash(entries_to_table(BANK))
    assert next(where.removeprefix(f"{path} ") for where in read.rows) in ("line 1", "row 1")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


MARK = "\ufeff".encode()
PADDED = {
    "a mark": lambda first, second: MARK + first + b"\n" + second,
    "two files in one": lambda first, second: MARK + first + b"\n" + MARK + second + b"\n",
    "lines of Windows": lambda first, second: first + b"\r\n" + second + b"\r\n",
    "blank lines": lambda first, second: b"\n\n" + first + b"\n \t\n" + second + b"\n\n",
    "a mark alone": lambda first, second: MARK + b"\r\n" + first + b"\n" + second,
    "blanks around": lambda first, second: b"  " + first + b" \n\t" + second + b"\t",
}


@pytest.mark.parametrize("pad", PADDED.values(), ids=PADDED)
def test_what_editors_add_means_nothing(pad, tmp_path):
    path = tmp_path / "bank.jsonl"
    path.write_bytes(pad(*(json.dumps(asdict(each)).encode() for each in BANK)))
    assert [*read_entries(path).rows.values()] == [*BANK]


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = tmp_path / "bank.jsonl"
    path.write_bytes(b"\n\n" + json.dumps(GOOD).encode() + b"\n\n{}\n")
    assert refusal(path).startswith("line 5: ")
    path.write_bytes(MARK + b"\n \n")
    assert "holds no entry" in refusal(path)


TEXTS_READ = (
    "क्\u200dष खोलो", "خانه\u200cها", "ශ්\u200dරී ලංකා", "👩🏽\u200d🚀 \U0001fae9",
    "ശ്രീ", "\U000323b0",
)  # fmt: skip


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("text", TEXTS_READ)
def test_joiners_and_new_characters_come_back(text, suffix, tmp_path):
    path = tmp_path / f"{text.split()[0]}{suffix}"
    given = replace(entry(text, condition=text, example=text), keywords=text)
    assert write_entries([given], path) == 1
    assert [*read_entries(path).rows.values()] == [given]


def test_lines_are_text_that_people_read(tmp_path):
    write_entries(BANK, tmp_path / "bank.jsonl")
    assert BANK[1].example in (tmp_path / "bank.jsonl").read_text(encoding="utf-8")


def test_the_longest_text_may_have_four_bytes_a_character(tmp_path):
    longest = entry("\U0001d52a" * MAX_TEXT_CHARS)
    write_entries([longest], tmp_path / "bank.parquet")
    assert [read.strategy for read in read_entries(tmp_path / "bank.parquet").rows.values()] == [longest.strategy]


def test_an_edited_entry_is_named_by_its_present_wording(tmp_path):
    edited = replace(BANK[0], strategy="mug in drawer", edited=4)
    assert write_entries([edited, entry("mug in drawer")], tmp_path / "bank.jsonl") == 1
    (read,) = read_entries(tmp_path / "bank.jsonl").rows.values()
    assert (read.id, read.edited) == (entry_id("s", "mug in drawer"), 4)


@pytest.mark.parametrize("name", ["bank.csv", "bank", "none/bank.jsonl", "there.jsonl"])
def test_a_file_that_cannot_be_written_is_refused(name, tmp_path):
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(CoevoError, match=r"name a|ends in"):
        write_entries(BANK, tmp_path / name)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("there.jsonl", "mine")]


@pytest.mark.parametrize("stem", ["x" * 194, "\u00e9" * 97], ids=["ascii", "accented"])
def test_a_name_has_at_most_200_bytes(stem, tmp_path):
    assert write_entries(BANK, tmp_path / f"{stem}.jsonl") == 2
    assert len(read_entries(tmp_path / f"{stem}.jsonl").rows) == 2
    with pytest.raises(CoevoError, match="cannot name a file: at most 200 printable bytes"):
        write_entries(BANK, tmp_path / f"{stem}x.jsonl")


def test_a_name_that_cannot_be_printed_is_refused(tmp_path):
    with pytest.raises(CoevoError, match="cannot name a file: at most 200 printable bytes"):
        write_entries(BANK, tmp_path / "a\nb.jsonl")


def test_a_file_has_so_many_entries_and_bytes_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "MAX_ENTRIES", 2)
    path = lines(tmp_path / "bank.jsonl", *map(asdict, BANK))
    assert len(read_entries(path).rows) == 2
    size = path.stat().st_size
    monkeypatch.setattr(exchange, "MAX_FILE_BYTES", size)
    assert len(read_entries(path).rows) == 2
    monkeypatch.setattr(exchange, "MAX_FILE_BYTES", size - 1)
    assert refusal(path) == f"has {size} bytes: a file of entries has 1 to {size - 1}"
    monkeypatch.undo()
    monkeypatch.setattr(exchange, "MAX_ENTRIES", 1)
    assert refusal(path) == "line 2: a file has at most 1 entries: split it"


FIELDS = {
    "missing": ({k: v for k, v in GOOD.items() if k != "scope"}, "column 'scope' is missing"),
    "extra": (GOOD | {"note": 1}, "column 'note' is not one of an entry"),
    "type of a text": (GOOD | {"strategy": 7}, "strategy = 7: is no text"),
    "null": (GOOD | {"condition": None}, "condition = None: is no text"),
    "type of a number": (GOOD | {"created": "1"}, "created = '1': is no revision"),
    "bool for a number": (GOOD | {"created": True}, "created = True: is no revision"),
    "fraction": (GOOD | {"edited": 1.5}, "edited = 1.5: is no revision"),
    "huge number": (GOOD | {"edited": 10**30}, "edited = 1000000000"),
    "sources no list": (GOOD | {"sources": "1/rollout/t/0"}, "sources = '1/rollout/t/0': is no list"),
    "source of another type": (GOOD | {"sources": [["x"]]}, "sources[0] = ['x']: is no episode id"),
    "source that climbs": (GOOD | {"sources": ["1/../t/0"]}, "sources[0] = '1/../t/0': is no episode id"),
    "source at the root": (GOOD | {"sources": ["/etc/passwd"]}, "sources[0] = '/etc/passwd'"),
    "id that climbs": (GOOD | {"id": "../../x"}, "id = '../../x': is not the hash of scope and strategy: write "),
    "id at the root": (GOOD | {"id": "/etc/passwd"}, "id = '/etc/passwd': is not the hash"),
    "id of another entry": (GOOD | {"id": BANK[1].id}, f"is not the hash of scope and strategy: write {BANK[0].id}"),
    "blank strategy": (named(strategy="  "), "strategy = '  ': is empty"),
    "no keywords": (GOOD | {"keywords": ""}, "keywords = '': is empty"),
    "long": (
        named(strategy="x" * (MAX_TEXT_CHARS + 1)),
        f"has {MAX_TEXT_CHARS + 1} characters: shorten it to {MAX_TEXT_CHARS}",
    ),
    "control character": (GOOD | {"scope": "s\x1b[2J"}, "holds the control character U+001B"),
    "line break": (GOOD | {"condition": "a\nb"}, "holds the control character U+000A"),
    "bidirectional": (GOOD | {"condition": "a\u202eb"}, "holds the control character U+202E"),
    "half a character": (GOOD | {"condition": "\ud800"}, "holds the control character U+D800"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_bad_field_is_named_with_its_line(name, tmp_path):
    row, says = FIELDS[name]
    said = refusal(lines(tmp_path / "bank.jsonl", asdict(BANK[1]), row))
    assert said.startswith("line 2: ")
    assert says in said


BYTES = {
    "empty": (b"", "has 0 bytes"),
    "garbage": (b"\x00\x01\x02{", "line 1: not readable as JSON"),
    "not UTF-8": (json.dumps(GOOD).encode()[:20] + b"\xff\n", "line 1: byte 21 is not UTF-8"),
    "NaN": (json.dumps(GOOD | {"created": float("nan")}).encode(), "NaN is no JSON number"),
    "infinity": (json.dumps(GOOD).replace('"created": 1', '"created": 1e999').encode(), "created = inf"),
    "a number of 5000 digits": (b'{"created": ' + b"9" * 5000 + b"}", "not readable as JSON"),
    "a key twice": (json.dumps(GOOD).replace('"scope"', '"id": "x", "scope"').encode(), "'id' occurs twice"),
    "no object": (b"[1]\n", "line 1: [1] is no object"),
    "deep": (b"[" * 100_000, "not readable as JSON"),
    "a long line": (b'{"strategy": "' + b"x" * 2**20, "line 1: is longer than 1048576 bytes"),
}


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_bank_at_all_is_refused(name, tmp_path):
    content, says = BYTES[name]
    (tmp_path / "bank.jsonl").write_bytes(content)
    assert says in refusal(tmp_path / "bank.jsonl")


@pytest.mark.parametrize(("content", "says"), [(b"", "has 0 bytes"), (BYTES["garbage"][0], "not readable as Parquet")])
def test_what_is_no_parquet_file_is_refused(content, says, tmp_path):
    (tmp_path / "bank.parquet").write_bytes(content)
    assert says in refusal(tmp_path / "bank.parquet")


def test_an_id_twice_names_both_lines(tmp_path):
    said = refusal(lines(tmp_path / "bank.jsonl", GOOD, asdict(BANK[1]), GOOD))
    assert said.startswith(f"line 3: id = '{BANK[0].id}': stands in line 1 as well")


@pytest.mark.parametrize("name", ["none.jsonl", "folder.jsonl", "bank.txt"])
def test_a_path_that_is_no_file_is_refused(name, tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "bank.txt").write_text("x")
    assert "name a file" in refusal(tmp_path / name) or "ends in" in refusal(tmp_path / name)


def parquet(path, rows=(GOOD,), schema=ENTRIES):
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


def typed(name, kind):
    return pa.schema([(field.name, kind if field.name == name else field.type) for field in ENTRIES])


PARQUET = {
    "missing": (pa.schema([field for field in ENTRIES if field.name != "scope"]), {}, "column 'scope' is missing"),
    "extra": (pa.schema([*ENTRIES, ("note", pa.string())]), {}, "column 'note' is not one"),
    "type": (typed("created", pa.float64()), {"created": 1.0}, "column 'created' is double: write it as int32"),
    "NaN": (typed("created", pa.float64()), {"created": float("nan")}, "column 'created' is double"),
    "bytes": (typed("strategy", pa.binary()), {"strategy": b"x"}, "column 'strategy' is binary: write it as string"),
    "twice": (pa.schema([*ENTRIES, ENTRIES.field("id")]), {}, "column 'id' is there twice"),
    "null": (ENTRIES, {"condition": None}, "row 1: condition = None: is no text"),
    "a climbing id": (ENTRIES, {"id": "../x"}, "row 1: id = '../x'"),
}


@pytest.mark.parametrize("name", PARQUET)
def test_a_bad_parquet_file_is_named_with_its_column(name, tmp_path):
    schema, changes, says = PARQUET[name]
    if name == "twice":
        arrays = [pa.array([(GOOD | changes)[field.name]], field.type) for field in schema]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), tmp_path / "bank.parquet")
    else:
        parquet(tmp_path / "bank.parquet", [GOOD | changes], schema)
    assert says in refusal(tmp_path / "bank.parquet")


def test_parquet_that_is_not_utf8_names_the_row(tmp_path):
    table = pa.Table.from_pylist([asdict(BANK[1]), GOOD], schema=ENTRIES)
    wrong = pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(2, "condition", wrong), tmp_path / "bank.parquet")
    assert refusal(tmp_path / "bank.parquet").startswith("row 2: condition")


def test_a_parquet_file_cut_short_is_refused(tmp_path):
    path = parquet(tmp_path / "bank.parquet", [asdict(one) for one in BANK])
    whole = path.read_bytes()
    for size in range(1, len(whole), max(1, len(whole) // 20)):
        path.write_bytes(whole[:size])
        assert "not readable as Parquet" in refusal(path)


@pytest.mark.full
@given(st.integers(0), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_any_byte_of_a_parquet_file_may_be_wrong(tmp_path_factory, directory, byte):
    path = parquet(tmp_path_factory.mktemp("flip") / "bank.parquet", [asdict(one) for one in BANK])
    content = bytearray(path.read_bytes())
    content[directory % len(content)] = byte
    path.write_bytes(content)
    try:
        read_entries(path)
    except CoevoError as error:
        assert "\n" not in str(error)


def test_a_footer_that_ends_whoever_reads_it_is_refused(tmp_path):
    path = parquet(tmp_path / "bank.parquet", [asdict(one) for one in BANK])
    content = bytearray(path.read_bytes())
    # A count in the column's size statistics: pyarrow 25 aborts at it.
    content[1150] = 5
    path.write_bytes(content)
    assert "not readable as Parquet: 'its footer cannot be read, exit status -6': export it again" in refusal(path)


def test_a_gigabyte_is_refused_in_little_memory(tmp_path):
    line = tmp_path / "bank.jsonl"
    with line.open("wb") as file:
        file.write(b'{"strategy": "')
        file.truncate(2**30)
    below = tmp_path / "below.jsonl"
    with below.open("wb") as file:
        file.write(b'{"strategy": "')
        file.truncate(MAX_FILE_BYTES)
    tracemalloc.start()
    assert f"has {2**30} bytes" in refusal(line)
    assert "is longer than" in refusal(below)
    assert tracemalloc.get_traced_memory()[1] < 16 * MAX_LINE_BYTES
    tracemalloc.stop()


@pytest.fixture
def allocated():
    """Bytes that Arrow allocates from here on."""
    own = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(own))
    pa.set_memory_pool(POOLS[-1])
    yield POOLS[-1]
    pa.set_memory_pool(own)


def test_a_text_that_compresses_well_is_refused_before_it_is_decompressed(tmp_path, request):
    path = tmp_path / "bank.parquet"
    table = pa.Table.from_pylist([GOOD | {"strategy": "x" * (MAX_FILE_BYTES + 1)}], schema=ENTRIES)
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < MAX_FILE_BYTES
    pool = request.getfixturevalue("allocated")
    assert "is larger than 67108864 bytes when decompressed" in refusal(path)
    assert pool.max_memory() < MAX_LINE_BYTES


def test_a_gigabyte_of_rows_that_share_a_text_is_refused_in_little_memory(tmp_path, allocated):
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1024, pa.int32()), ["x" * 2**20])
    table = pa.Table.from_pylist([GOOD] * 1024, schema=ENTRIES).set_column(1, "strategy", shared)
    # Without Arrow's own schema beside it the column reads as the string that it is.
    pq.write_table(table, tmp_path / "bank.parquet", store_schema=False, compression="zstd")
    assert "row 1: strategy has 1048576 bytes" in refusal(tmp_path / "bank.parquet")
    assert 2**20 < allocated.max_memory() < MAX_FILE_BYTES
