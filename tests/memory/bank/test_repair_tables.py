"""Damaged files of a bank are replaced from another bank, and no others."""

import os
import shutil

import pytest

from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_files import manifest_name, read_version
from coevo.memory.bank.repair_tables import Mend, find_mend, place, related
from coevo.memory.bank.table import RecordedTable
from coevo.memory.bank.table_check import faults
from coevo.memory.stats import Stats
from coevo.utilities.errors import CoevoError


@pytest.fixture
def banks(tmp_path):
    """A bank and its copy, and the recorded versions of their counters."""
    bank, recorded = Bank(tmp_path / "own"), set()
    for number in range(3):
        bank.merge(BankChange(stats=(Stats(f"e{number}", number),)))
        recorded.add((bank.versions()["stats"], bank.hashes()["stats"]))
    shutil.copytree(tmp_path / "own", tmp_path / "other")
    return tmp_path / "own", tmp_path / "other", recorded


def mended(own, other, recorded, scratch):
    """Files that repair the bank and the versions that have their content again, once the files are in place."""
    mend = find_mend(own, "stats", recorded, related(own, [other]))
    place(own, mend, recorded, scratch)
    return mend.files, mend.versions


@pytest.mark.parametrize("as_large", [False, True])
def test_only_the_damaged_file_is_taken_though_the_donor_lacks_another(banks, tmp_path, as_large):
    own, other, recorded = banks
    table, last = own / "stats.lance", max(version for version, _ in recorded)
    newest = read_version(table / manifest_name(last)).read
    first = read_version(table / manifest_name(last - 2)).read
    (damaged,) = set(newest) - set(read_version(table / manifest_name(last - 1)).read)
    before = (table / damaged).stat()
    (table / damaged).write_bytes(bytes(before.st_size * as_large))
    os.utime(table / damaged, ns=(before.st_atime_ns, before.st_mtime_ns))
    (other / "stats.lance" / first[0]).unlink()
    copy = other / "stats.lance" / damaged
    assert mended(own, other, recorded, tmp_path / "scratch") == ({damaged: copy}, {last})
    assert faults(own, {"stats": recorded}) == []


def test_a_lost_manifest_is_taken_alone(banks, tmp_path):
    own, other, recorded = banks
    second = sorted(recorded)[1][0]
    (own / "stats.lance" / manifest_name(second)).unlink()
    copy = other / "stats.lance" / manifest_name(second)
    assert mended(own, other, recorded, tmp_path / "scratch") == ({manifest_name(second): copy}, {second})
    assert faults(own, {"stats": recorded}) == []


def test_a_sound_bank_needs_nothing(banks, tmp_path):
    assert mended(*banks, tmp_path / "scratch") == ({}, set())


def test_what_the_donor_lacks_as_well_stays_broken(banks, tmp_path):
    own, other, recorded = banks
    table, (second, last) = own / "stats.lance", sorted(version for version, _ in recorded)[1:]
    (data,) = {*read_version(table / manifest_name(last)).read} - {*read_version(table / manifest_name(second)).read}
    for lost in (table / data, table / manifest_name(second), other / "stats.lance" / manifest_name(second)):
        lost.unlink()
    assert mended(own, other, recorded, tmp_path / "scratch") == ({data: other / "stats.lance" / data}, {last})
    assert [fault.version for fault in faults(own, {"stats": recorded})] == [second]


def test_a_file_that_mends_one_version_and_breaks_another_is_not_taken(banks, tmp_path):
    own, other, recorded = banks
    (first, _), sound, (last, _) = sorted(recorded)
    (data,) = read_version(own / "stats.lance" / manifest_name(first)).read
    Bank(tmp_path / "third").merge(BankChange(stats=(Stats("e0", 7),)))
    (changed,) = (tmp_path / "third" / "stats.lance" / "data").iterdir()
    shutil.copyfile(changed, other / "stats.lance" / data)
    wanted = {sound, (last, RecordedTable(other, "stats", last).hash())}
    assert [fault.version for fault in faults(own, {"stats": wanted})] == [last]
    assert find_mend(own, "stats", wanted, related(own, [other])) == Mend("stats", {}, frozenset())


def test_a_bank_without_a_common_file_is_no_donor(banks, tmp_path):
    Bank(tmp_path / "stranger").merge(BankChange(stats=(Stats("e0"),)))
    assert related(banks[0], [tmp_path / "stranger"]) == []


def test_a_manifest_and_its_data_are_taken_together_in_the_place_of_folders(banks, tmp_path):
    own, other, recorded = banks
    table, last = own / "stats.lance", max(version for version, _ in recorded)
    older = read_version(table / manifest_name(last - 1)).read
    (data,) = set(read_version(table / manifest_name(last)).read) - set(older)
    for name in (manifest_name(last), data):
        (table / name).unlink()
        (table / name).mkdir()
    found, versions = mended(own, other, recorded, tmp_path / "scratch")
    assert found == {name: other / "stats.lance" / name for name in (manifest_name(last), data)}
    assert versions == {last}
    assert faults(own, {"stats": recorded}) == []
    assert not (tmp_path / "scratch").exists()


def test_copies_that_changed_since_the_search_are_not_used(banks, tmp_path):
    own, other, recorded = banks
    second = sorted(recorded)[1][0]
    (own / "stats.lance" / manifest_name(second)).unlink()
    mend = find_mend(own, "stats", recorded, related(own, [other]))
    (other / "stats.lance" / manifest_name(second)).write_bytes(b"changed")
    with pytest.raises(CoevoError, match="bank table stats: the copies to repair it with have changed"):
        place(own, mend, recorded, tmp_path / "scratch")
    assert not (own / "stats.lance" / manifest_name(second)).exists()
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize("name", ["elsewhere", "somewhere"])
def test_a_folder_that_is_a_link_is_not_written_into(banks, tmp_path, name):
    own, other, recorded = banks
    table, last = own / "stats.lance", max(version for version, _ in recorded)
    elsewhere = (table / "_versions").rename(tmp_path / name)
    (table / "_versions").symlink_to(elsewhere)
    (elsewhere / manifest_name(last).partition("/")[2]).unlink()
    with pytest.raises(CoevoError, match="is a link to another place"):
        mended(own, other, recorded, tmp_path / "scratch")
    assert (
        len(list(elsewhere.glob("*.manifest"))) == len(list((other / "stats.lance").glob("_versions/*.manifest"))) - 1
    )
