"""A sound version is read whatever has happened to the others."""

import os
from contextlib import nullcontext

import pytest

from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_errors import UnreadableError
from coevo.memory.bank.lance_files import manifest_name, read_version
from coevo.memory.bank.opening import (
    ASIDE,
    HINT,
    existing,
    open_version,
    require_files,
    require_openable,
    set_aside,
)
from coevo.memory.stats import Stats


@pytest.fixture
def damaged(tmp_path):
    """A bank whose last version of the counters has a damaged manifest, and the numbers of the three versions."""
    bank, versions = Bank(tmp_path), []
    for retrievals in range(3):
        bank.merge(BankChange(stats=(Stats("e", retrievals),)))
        versions.append(bank.versions()["stats"])
    (tmp_path / "stats.lance" / manifest_name(versions[-1])).write_bytes(b"no manifest")
    return tmp_path, versions


def test_an_earlier_version_is_read_and_the_damaged_one_is_refused(damaged):
    bank, (first, second, last) = damaged
    found = [open_version(bank, "stats", version).to_arrow()["retrievals"].to_pylist() for version in (first, second)]
    assert [counts[-1:] for counts in found] == [[0], [1]]
    with pytest.raises(UnreadableError):
        open_version(bank, "stats", last)


def test_a_manifest_that_cannot_be_opened_is_set_aside_and_no_other(damaged):
    bank, (_, second, last) = damaged
    set_aside(bank, "stats")
    table = bank / "stats.lance"
    assert [path.name for path in (table / ASIDE).iterdir()] == [manifest_name(last).partition("/")[2]]
    assert Bank(bank).versions()["stats"] == second


def test_each_manifest_and_a_hint_that_cannot_be_read_are_set_aside_beside_earlier_ones(damaged):
    bank, (first, second, last) = damaged
    table = bank / "stats.lance"
    (table / HINT).unlink(missing_ok=True)
    os.mkfifo(table / HINT)
    (table / manifest_name(second)).write_bytes(b"no manifest")
    name = manifest_name(last).partition("/")[2]
    (table / ASIDE).mkdir()
    (table / ASIDE / name).touch()
    set_aside(bank, "stats")
    moved = {name, f"{name}.1", manifest_name(second).partition("/")[2], HINT.partition("/")[2]}
    assert {path.name for path in (table / ASIDE).iterdir()} == moved
    assert Bank(bank).versions()["stats"] == first


def test_a_manifest_whose_name_has_no_number_is_set_aside_if_it_comes_first(damaged):
    bank, (_, second, last) = damaged
    table = bank / "stats.lance"
    (table / manifest_name(last)).rename(table / "_versions" / "#.manifest")
    set_aside(bank, "stats")
    assert [path.name for path in (table / ASIDE).iterdir()] == ["#.manifest"]
    assert Bank(bank).versions()["stats"] == second


@pytest.mark.parametrize(("position", "read"), [("hint", True), ("newest", True), ("older", False)])
def test_a_pipe_that_lance_would_read_first_is_refused(damaged, position, read):
    bank, (_, second, last) = damaged
    table = bank / "stats.lance"
    (table / HINT).unlink(missing_ok=True)
    require_openable(table)
    pipe = table / {"hint": HINT, "newest": manifest_name(last), "older": manifest_name(second)}[position]
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="is no regular file") if read else nullcontext():
        require_openable(table)


def test_a_pipe_among_the_files_of_a_version_is_refused_and_a_missing_file_is_left_to_lance(damaged):
    bank, (first, _, last) = damaged
    table = bank / "stats.lance"
    (data,) = read_version(table / manifest_name(first)).read
    (table / data).unlink()
    require_files(bank, "stats", first)
    os.mkfifo(table / data)
    with pytest.raises(OSError, match="is no regular file"):
        require_files(bank, "stats", first)
    with pytest.raises(ValueError, match=f"the manifest of version {last} is damaged"):
        require_files(bank, "stats", last)


def test_a_folder_of_another_name_is_no_table(damaged):
    bank, _ = damaged
    (bank / "other.lance").mkdir()
    for name in ("other", "nothing"):
        with pytest.raises(FileNotFoundError):
            existing(bank, name)
