"""Every recorded version of every table is read, however a version came about; every damaged file shows."""

import shutil
from dataclasses import replace

import pytest
from support import small_run

from coevo.memory.bank import table_check
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import SCHEMAS, BankChange
from coevo.memory.bank.lance_files import manifest_name
from coevo.memory.bank.table_check import faults, stale
from coevo.memory.stats import Stats


class Recorded:
    """A bank, and the versions and hashes of each of its revisions."""

    def __init__(self, path):
        self.path = path
        self.bank = Bank(path)
        self.revisions = []
        self.note()

    def note(self):
        self.revisions.append((self.bank.versions(), self.bank.hashes()))

    def merge(self, **change):
        self.bank.merge(BankChange(**change))
        self.note()

    def wanted(self):
        return {name: {(versions[name], hashes[name]) for versions, hashes in self.revisions} for name in SCHEMAS}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """New rows, replaced rows, a restore, and rows after it; one version with more rows than are looked for."""
    found = Recorded(tmp_path_factory.mktemp("bank"))
    for revision in range(1, 5):
        counters = tuple(Stats(f"s{n}", revision, n, 0.5, n) for n in range(revision - 1, revision + 2))
        lesson = small_run.entry(f"lesson {revision}", "mug", "go safe", revision)
        found.merge(entries=(lesson,), stats=counters, judged=(small_run.judged(revision, (lesson,), (1.0, 0.0)),))
    found.merge(entries=(replace(small_run.entry("lesson 2", "mug", "go safe", 2), example="go drawer"),))
    found.bank.restore(*found.revisions[2])
    found.note()
    found.merge(entries=(small_run.entry("after", "mug", "go safe", 9),))
    found.merge(stats=tuple(Stats(f"t{n}", 1, 1, 0.5, 1) for n in range(257)))
    found.merge(stats=(Stats("t7", 2, 1, 0.5, 1),))
    return found


def test_a_sound_bank_has_no_fault(recorded):
    assert list(faults(recorded.path, recorded.wanted())) == []
    assert list(stale(recorded.path, recorded.revisions[-1][1])) == []


def test_only_what_the_version_before_does_not_lead_to_is_read_in_full(recorded, monkeypatch):
    read, whole = [], table_check._Reader.whole

    async def noted(reader, version):
        read.append((reader._table.name, version))
        return await whole(reader, version)

    monkeypatch.setattr(table_check._Reader, "whole", noted)
    assert faults(recorded.path, recorded.wanted()) == []
    first, *_, restored, many, _ = sorted(version for version, _ in recorded.wanted()["stats"])
    assert [version for table, version in read if table == "stats"] == [first, restored, many]


@pytest.mark.parametrize("digit", ["0", "f"])
def test_other_content_than_recorded_is_named(recorded, digit):
    wanted = recorded.wanted()
    version, held = sorted(wanted["entries"])[2]
    wanted["entries"] = {(v, digit * 64 if v == version else content) for v, content in wanted["entries"]}
    (fault,) = faults(recorded.path, wanted)
    assert (fault.table, fault.version) == ("entries", version)
    assert fault.problem == f"has content {held[:12]}, not the recorded {digit * 12}"


@pytest.mark.parametrize("content", ["0123456789abcdef", "fedcba9876543210"])
def test_a_latest_version_with_other_content_is_stale(recorded, content):
    _, hashes = recorded.revisions[-1]
    (fault,) = stale(recorded.path, hashes | {"stats": content})
    assert fault.problem == f"has content {hashes['stats'][:12]}, not {content[:12]}"


def test_a_table_that_is_not_there_is_named_and_not_made(tmp_path):
    (fault,) = faults(tmp_path, {"entries": {(1, "0" * 64)}})
    assert (fault.table, fault.version) == ("entries", None)
    assert list(tmp_path.iterdir()) == []


def test_older_versions_are_read_without_the_two_newest_manifests(recorded, tmp_path):
    bank = shutil.copytree(recorded.path, tmp_path / "bank")
    *_, before, last = sorted({version for version, _ in recorded.wanted()["stats"]})
    (bank / "stats.lance" / manifest_name(last)).unlink()
    (bank / "stats.lance" / manifest_name(last)).mkdir()
    (bank / "stats.lance" / manifest_name(before)).write_bytes(b"no manifest")
    found = [(fault.table, fault.version) for fault in faults(bank, recorded.wanted())]
    assert found == [("stats", None), ("stats", before), ("stats", last)]


def test_a_version_without_manifest_is_said_to_be_missing(recorded, tmp_path):
    bank, wanted = shutil.copytree(recorded.path, tmp_path / "bank"), recorded.wanted()["stats"]
    (bank / "stats.lance" / manifest_name(min(wanted)[0])).unlink()
    (fault,) = faults(bank, {"stats": wanted})
    assert fault.version == min(wanted)[0]
    assert fault.problem.startswith("cannot be read: ")
    assert fault.problem.endswith("does not exist")


def test_without_any_manifest_that_lance_can_open_every_version_is_named(tmp_path):
    Bank(tmp_path).merge(BankChange(stats=(Stats("e"),)))
    for version in (1, 2):
        # The version, and a feature (field 9) that only a later Lance can read.
        fields = b"\x18" + bytes([version]) + b"\x48\x80\x80\x40"
        short = len(fields).to_bytes(4, "little") + fields + bytes(12) + b"LANC"
        (tmp_path / "stats.lance" / manifest_name(version)).write_bytes(short)
    found = faults(tmp_path, {"stats": {(1, "0" * 64), (2, "0" * 64)}})
    assert [fault.version for fault in found] == [None, 1, 2]


@pytest.mark.parametrize("damage", ["gone", "half"])
def test_every_file_is_needed(recorded, tmp_path, damage):
    files = [path for path in recorded.path.rglob("*") if path.suffix in (".lance", ".arrow", ".manifest")]
    files = [path.relative_to(recorded.path) for path in files if path.is_file()]
    copy = tmp_path / "bank"
    shutil.copytree(recorded.path, copy)
    wanted, unnoticed = recorded.wanted(), []
    for file in files:
        name, content = file.parts[0].removesuffix(".lance"), (copy / file).read_bytes()
        (copy / file).unlink()
        if damage == "half":
            (copy / file).write_bytes(content[: len(content) // 2])
        if not faults(copy, {name: wanted[name]}):
            unnoticed.append(file)
        (copy / file).write_bytes(content)
    assert len(files) > 30
    assert unnoticed == []
