"""Old versions of a bank: what only they need, and that everything else reads the same without it."""

import errno
import os
import shutil

import lancedb
import pytest
from support.batches import entry

from coevo.memory.bank import table_retention
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_files import versions
from coevo.memory.bank.table import RecordedTable
from coevo.memory.bank.table_retention import copy, prove, surplus
from coevo.memory.stats import Stats
from coevo.utilities.errors import CoevoError

REVISIONS = 8


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A bank of eight revisions with inserts, edits and a rollback; versions and hashes of each."""
    path = tmp_path_factory.mktemp("made") / "bank"
    bank, marks = Bank(path), []
    for revision in range(REVISIONS):
        if revision == 5:
            bank.restore(*marks[2])
        elif revision > 0:
            fresh = entry(f"lesson {revision}")
            old = Stats(entry("lesson 0").id, retrievals=revision, successes=0)
            counters = (old, Stats(fresh.id)) if revision != 3 else ()
            bank.merge(BankChange(entries=(fresh,), stats=counters))
        if revision == 3:
            bank = replaced_in_place(path, old)
        marks.append((bank.versions(), bank.hashes()))
    return path, marks


@pytest.fixture
def history(made, tmp_path):
    """A copy of it."""
    return shutil.copytree(made[0], tmp_path / "bank"), made[1]


def replaced_in_place(path, row):
    """The bank after a write as other tools make it, which leaves a deletion file."""
    table = lancedb.connect(path).open_table("stats")
    table.merge_insert("id").when_matched_update_all().execute(BankChange(stats=(row,)).tables()["stats"])
    return Bank(path)


def kept(marks, *revisions):
    return {
        name: {marks[revision][0][name]: marks[revision][1][name] for revision in revisions} for name in marks[0][0]
    }


@pytest.mark.parametrize("revisions", [(0, 7), (0, 3, 7), (2, 4, 6), tuple(range(REVISIONS))])
def test_without_the_surplus_every_kept_version_and_the_latest_read_the_same(history, tmp_path, revisions):
    path, marks = history
    wanted = kept(marks, *revisions)
    prove(path, wanted, tmp_path / "scratch")
    for file in surplus(path, wanted):
        file.unlink()
    for revision in revisions:
        assert Bank(path).at(marks[revision][0]).hashes() == marks[revision][1]
    assert Bank(path).hashes() == marks[-1][1]
    assert surplus(path, wanted) == []
    assert not (tmp_path / "scratch").exists()
    Bank(path).merge(BankChange(entries=(entry("afterwards"),)))
    assert len(Bank(path).entries()) == len(Bank(path).at(marks[-1][0]).entries()) + 1


def test_dropped_versions_go_with_their_files(history):
    path, marks = history
    wanted = kept(marks, 0, 7)
    before = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    gone = surplus(path, wanted)
    assert {"_versions", "_transactions", "_deletions", "data"} == {file.parent.name for file in gone}
    freed = sum(file.stat().st_size for file in gone)
    for file in gone:
        file.unlink()
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) == before - freed
    assert {version.number for version in versions(path / "entries.lance")} == {
        marks[0][0]["entries"], marks[7][0]["entries"]
    }  # fmt: skip
    with pytest.raises(CoevoError, match="is gone, so its revision cannot be read"):
        Bank(path).at(marks[4][0])


def test_nothing_is_surplus_while_everything_is_kept(history):
    path, marks = history
    assert surplus(path, kept(marks, *range(REVISIONS))) == []


def test_what_a_killed_write_left_is_surplus(history):
    path, marks = history
    stray = path / "stats.lance" / "data" / "stray.lance"
    stray.write_bytes(b"x")
    assert surplus(path, kept(marks, *range(REVISIONS))) == [stray]


def test_a_version_that_does_not_read_as_recorded_is_named(history, tmp_path):
    path, marks = history
    wanted, number = kept(marks, 0, 7), marks[0][0]["stats"]
    for digit in "0f":
        wanted["stats"][number] = digit * 64
        said = f"bank table stats: version {number} cannot be read: its content is [0-9a-f]{{12}}, recorded is {digit}"
        with pytest.raises(CoevoError, match=f"{said}{{12}};"):
            prove(path, wanted, tmp_path / "scratch")
    missing = kept(marks, 0, 7) | {"entries": {99: "0" * 64}}
    with pytest.raises(CoevoError, match="bank table entries: version 99 is gone") as caught:
        prove(path, missing, tmp_path / "scratch")
    assert "\n" not in str(caught.value)


def test_the_proof_is_read_from_a_bank_without_the_surplus(history, tmp_path, monkeypatch):
    path, marks = history
    wanted, seen = kept(marks, 2, 4), []

    def noted(bank, name, version):
        seen.append(files_of(bank))
        return RecordedTable(bank, name, version)

    monkeypatch.setattr(table_retention, "RecordedTable", noted)
    prove(path, wanted, tmp_path / "scratch")
    without = files_of(path) - {file.relative_to(path) for file in surplus(path, wanted)}
    assert seen == [without] * sum(map(len, wanted.values()))
    prove(path, {}, tmp_path / "scratch")


def files_of(bank):
    found = {file.relative_to(bank) for file in bank.rglob("*") if file.is_file()}
    return {file for file in found if not file.name.startswith("latest")}


def test_a_file_that_a_version_needs_and_lacks_is_noticed(history, tmp_path):
    path, marks = history
    for data in (path / "entries.lance" / "data").iterdir():
        data.unlink()
    with pytest.raises(CoevoError, match="bank table entries cannot be read"):
        prove(path, kept(marks, 0, 7), tmp_path / "scratch")


def test_a_manifest_of_another_format_is_refused(history):
    path, marks = history
    manifest = versions(path / "stats.lance")[0].manifest
    manifest.write_bytes(b"something else")
    with pytest.raises(CoevoError, match="not a manifest of Lance as it is known here"):
        surplus(path, kept(marks, 0, 7))


def test_a_copy_has_the_kept_versions_and_goes_its_own_way(history, tmp_path):
    path, marks = history
    copy(path, tmp_path / "copy", kept(marks, 0, 1, 3))
    mine = Bank(tmp_path / "copy")
    assert (mine.versions(), mine.hashes()) == marks[3]
    for revision in (0, 1, 3):
        assert mine.at(marks[revision][0]).hashes() == marks[revision][1]
    mine.merge(BankChange(entries=(entry("mine"),)))
    mine.restore(*marks[1])
    assert (Bank(path).versions(), Bank(path).hashes()) == marks[7]
    shutil.rmtree(path)
    assert Bank(tmp_path / "copy").hashes() == marks[1][1]
    assert mine.at(marks[3][0]).hashes() == marks[3][1]


def test_a_copy_on_another_file_system_holds_the_same(history, tmp_path, monkeypatch):
    path, marks = history

    def refuse(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    copy(path, tmp_path / "copy", kept(marks, 3, 7))
    assert Bank(tmp_path / "copy").hashes() == marks[7][1]
    assert Bank(tmp_path / "copy").at(marks[3][0]).hashes() == marks[3][1]
