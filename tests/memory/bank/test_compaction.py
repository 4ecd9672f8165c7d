"""Many writes leave few fragments and add little, and every version stays what it was."""

import random
import shutil
from contextlib import suppress
from itertools import pairwise

import pyarrow as pa
import pytest

from coevo.memory.bank import table as versioned
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.compaction import FRAGMENT, MIN_FRAGMENTS, MIN_OBSOLETE_FRAGMENTS, compaction, counting, within
from coevo.memory.stats import Stats

WRITES = 24


def fragments(path):
    return len({row >> 32 for row in row_addresses(path)})


def row_addresses(path):
    table = Bank(path)._tables["stats"]._table
    return table.search().with_row_id(True).select(["id"]).to_arrow()["_rowid"].to_pylist()


def names(path):
    return {file for file in path.rglob("*") if file.is_file() and not file.name.startswith("latest")}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A bank after many writes of a few of its counters, and what each revision recorded and held."""
    path, draws, held, recorded = tmp_path_factory.mktemp("bank"), random.Random(0), {}, []
    bank = Bank(path)
    for number in range(WRITES):
        change = tuple(Stats(f"e{i:04}", number, number) for i in draws.sample(range(3000), 3000 if not number else 30))
        bank.merge(BankChange(stats=change))
        held |= {row.id: row for row in change}
        recorded.append((bank.versions(), bank.hashes(), dict(held)))
    return path, recorded


def test_many_writes_leave_few_fragments(written):
    assert fragments(written[0]) <= MIN_FRAGMENTS + 1 + MIN_OBSOLETE_FRAGMENTS


def test_every_version_has_the_rows_and_the_hash_that_were_recorded(written):
    bank, recorded = Bank(written[0]), written[1]
    for versions, hashes, held in recorded:
        view = bank.at(versions)
        assert view.stats() == held
        assert view.hashes() == hashes


def test_a_write_is_one_version_and_now_and_then_another(written):
    versions = [versions["stats"] for versions, *_ in written[1]]
    steps = [after - before for before, after in pairwise(versions)]
    assert set(steps) == {1, 2}
    assert steps.count(2) <= WRITES / MIN_OBSOLETE_FRAGMENTS


def test_no_write_leaves_a_deletion_file(written):
    assert not list(written[0].rglob("_deletions/*"))


def test_what_ends_before_fragments_are_dropped_holds_the_same(tmp_path, monkeypatch):
    whole, cut = Bank(tmp_path / "whole"), Bank(tmp_path / "cut")
    for number in range(10):
        change = BankChange(stats=tuple(Stats(f"e{i:02}", number) for i in range(20)))
        whole.merge(change)
        with monkeypatch.context() as patch:
            patch.setattr(versioned, "within", killed)
            with suppress(KeyboardInterrupt):
                cut.merge(change)
        cut = Bank(tmp_path / "cut")
        assert cut.hashes() == whole.hashes()
    assert fragments(tmp_path / "cut") == 10 > fragments(tmp_path / "whole")


def killed(idle):
    raise KeyboardInterrupt


def test_an_old_version_is_restored_and_written_on(written, tmp_path):
    path, recorded = written
    bank = Bank(shutil.copytree(path, tmp_path / "copy"))
    versions, hashes, held = recorded[5]
    assert bank.restore(versions, hashes) == ["stats"]
    bank.merge(BankChange(stats=(Stats("new"),)))
    assert bank.stats() == Bank(tmp_path / "copy").stats() == held | {"new": Stats("new")}
    assert bank.hashes() == Bank(tmp_path / "copy").hashes()


def test_a_write_adds_little_beyond_what_it_changes(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(stats=tuple(Stats(f"e{i:05}") for i in range(20_000))))
    for number in range(1, 12):
        before, change = names(tmp_path), BankChange(stats=tuple(Stats(f"e{i:05}", number) for i in range(200)))
        bank.merge(change)
        added = sum(file.stat().st_size for file in names(tmp_path) - before)
        assert added <= 1.2 * change.tables()["stats"].nbytes + 64 * 1024


class Placed:
    """A table whose rows stand in fragments of these sizes; answers the one query of a plan."""

    def __init__(self, rows, sizes):
        places = [(number << FRAGMENT) + row for number, size in enumerate(sizes) for row in range(size)]
        self._answer = rows.select(["id"]).append_column("_rowid", pa.array(places, pa.uint64()))

    def search(self):
        return self

    with_row_id = select = lambda self, _: self

    def to_arrow(self):
        return self._answer


def kibibytes(first, count):
    """Rows of 1024 bytes each: four bytes of id, four of its offset, and the rest."""
    ids = pa.array([f"{row:04}" for row in range(first, first + count)])
    rest = pa.FixedSizeBinaryArray.from_buffers(pa.binary(1016), count, [None, pa.py_buffer(bytes(1016 * count))])
    return pa.table({"id": ids, "rest": rest})


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([40, 20, 20, 20, 20, 20, 28, 30], range(40, 168)),  # 128 rows of 1 KiB: not the first and the last
        ([43] * 8, range(86)),  # a third would make 129
        ([20] * 7, ()),  # fewer than eight fragments
    ],
)
def test_a_write_takes_along_the_smallest_fragments_up_to_its_own_size_and_64_kib(sizes, expected):
    rows, new = kibibytes(0, sum(sizes)), kibibytes(5000, 64)
    planned = compaction(Placed(rows, sizes), rows, new)
    taken = [int(row) for row in planned.rows["id"].to_pylist()]
    assert taken == list(expected)
    assert planned.idle == ()


@pytest.mark.parametrize(("count", "replaced", "idle"), [(7, 3, ()), (7, 4, (0, 1, 2, 3)), (12, 4, (0, 1, 2, 3))])
def test_fragments_without_a_current_row_are_dropped_once_they_are_four(count, replaced, idle):
    rows = kibibytes(0, 2 * count)
    planned = compaction(Placed(rows, [2] * count), rows, rows.slice(0, 2 * replaced))
    assert (planned.rows.num_rows, planned.idle) == (0, idle)


def test_the_rows_of_a_fragment_are_those_from_its_first_to_that_of_the_next():
    assert within([3, 5]) == (
        "(_rowid >= 12884901888 AND _rowid < 17179869184) OR (_rowid >= 21474836480 AND _rowid < 25769803776)"
    )


@pytest.mark.parametrize(
    ("first", "count", "current"),
    [(0, 0, []), (0, 1, [("b", 4)]), (0, 2, [("a", 7), ("b", 4)]), (1, 2, [("a", 7)]), (0, 4, [("a", 7), ("b", 4)])],
)
def test_the_last_row_of_each_id_is_current(first, count, current):
    rows = pa.table({"id": list("baab"), "_rowid": pa.array([4, 7, 5, 2], pa.uint64())}).slice(first, count)
    assert [tuple(row.values()) for row in counting(rows).to_pylist()] == current
