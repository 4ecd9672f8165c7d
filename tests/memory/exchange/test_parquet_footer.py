import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coevo.memory.exchange.parquet_footer import sizes


def test_bytes_of_all_columns_and_values_of_the_longest(tmp_path):
    table = pa.table({"number": [1, 2, 3], "items": [["a"] * 5, [], ["b"]]})
    pq.write_table(table, tmp_path / "two.parquet", row_group_size=2)
    decompressed, longest = sizes(tmp_path / "two.parquet")
    # Of the first two rows: five items, and an empty list, which is a value as well.
    assert longest == 6
    groups = pq.read_metadata(tmp_path / "two.parquet")
    assert decompressed == sum(groups.row_group(number).total_byte_size for number in range(2))


def test_a_file_without_rows_has_no_bytes_and_no_values(tmp_path):
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema([("number", pa.int64())])).close()
    assert sizes(tmp_path / "none.parquet") == (0, 0)


def test_whatever_keeps_the_footer_from_being_read_is_a_value_error(tmp_path):
    (tmp_path / "text.parquet").write_text("not Parquet")
    with pytest.raises(ValueError, match="its footer cannot be read, exit status 1"):
        sizes(tmp_path / "text.parquet")
