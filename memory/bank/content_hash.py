"""Content hashes of Arrow tables: equal content gives equal hashes, independent of storage and row order."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from hashlib import _Hash


def content_hash(table: pa.Table) -> str:
    """SHA-256 (hex) over column names and values, rows sorted by their unique ``id``; no column may hold nulls.

    A column is encoded as lengths (int64) and bytes for text, lengths and flattened values for lists, field after
    field for structs, and little-endian values otherwise, so fragments, chunks and offsets leave no trace.
    """
    digest = hashlib.sha256()
    ordered = _ordered(table.combine_chunks())
    for name, column in zip(ordered.column_names, ordered.columns, strict=True):
        digest.update(f"{name}:{ordered.num_rows};".encode())
        for chunk in column.chunks:
            _feed(digest, chunk)
    return digest.hexdigest()


def _ordered(table: pa.Table) -> pa.Table:
    ids = table["id"]
    ascending = pc.all(pc.less_equal(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py() if len(ids) > 1 else True
    return table if ascending else table.sort_by("id")


def _feed(digest: "_Hash", array: pa.Array) -> None:
    if array.null_count:
        raise ValueError(f"{array.null_count} nulls in a column of {array.type}: bank tables hold none")
    if pa.types.is_struct(array.type):
        for field in array.flatten():
            _feed(digest, field)
    elif pa.types.is_list(array.type):
        digest.update(_lengths(array.offsets.to_numpy()))
        _feed(digest, array.flatten())
    elif pa.types.is_string(array.type):
        _feed_text(digest, array)
    else:
        values = array.to_numpy(zero_copy_only=False)
        digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())


def _feed_text(digest: "_Hash", array: pa.StringArray) -> None:
    if not len(array):  # such an array may have no offsets
        return
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    digest.update(_lengths(bounds))
    digest.update(memoryview(data)[bounds[0] : bounds[-1]])


def _lengths(offsets: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> bytes:
    return np.diff(offsets).astype("<i8").tobytes()
