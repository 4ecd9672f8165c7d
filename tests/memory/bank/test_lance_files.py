"""Manifests of Lance from outside are read in bounded time and memory."""

import time

import lancedb
import pytest

from coevo.memory.bank.lance_files import (
    MAGIC,
    Version,
    belonging,
    check_enclosed,
    files,
    manifest_name,
    mirror,
    read_version,
    versions,
)
from coevo.utilities.errors import CoevoError

LANCEDB = "0.40."
"""Beginning of the versions of LanceDB whose manifests are known to be read as LanceDB reads them."""


def test_files_of_a_version_are_all_that_this_lancedb_needs_for_it(tmp_path):
    assert lancedb.__version__.startswith(LANCEDB)
    table, path = lancedb.connect(tmp_path).create_table("t", [{"id": "a", "n": 1}]), tmp_path / "t.lance"
    table.add([{"id": "b", "n": 2}])
    table.merge_insert("id").when_matched_update_all().execute([{"id": "b", "n": 3}])
    table.delete("id = 'a'")
    found = versions(path)
    assert [each.number for each in found] == [each["version"] for each in table.list_versions()]
    for each in found:
        alone = tmp_path / str(each.number)
        mirror(path, alone / "t.lance", [manifest_name(each.number), *belonging(files(path), [each])])
        table.checkout(each.number)
        assert lancedb.connect(alone).open_table("t").to_arrow() == table.to_arrow()


def test_files_of_many_versions_are_found_in_one_walk():
    kept = [
        Version(number, None, frozenset({f"data/{number}", f"_deletions/{number}"}), {}) for number in range(10_000)
    ]
    names = [f"{folder}/{number}" for folder in ("data", "_deletions") for number in range(20_000)]
    before = time.process_time()
    found = belonging((f"{name}.arrow" if "deletions" in name else name for name in names), kept)
    assert time.process_time() - before < 2
    assert len(found) == 20_000


def manifest(fields, before=b""):
    """A file with these bytes as the fields of a manifest, after some others."""
    end = len(before).to_bytes(8, "little") + b"\x01\x02\x03\x04" + MAGIC
    return before + len(fields).to_bytes(4, "little") + fields + end


def part(field, content):
    """A field of bytes, in the encoding of protocol buffers."""
    key = field << 3 | 2
    return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + bytes([len(content)]) + content


def test_number_and_files_are_found_among_fields_of_every_type(tmp_path):
    unknown = b"\xf1\x01" + b"\xff" * 8 + b"\xfd\x01" + b"\xff" * 4  # fields 30 and 31, of fixed 8 and 4 bytes
    version = b"\x18\xac\x02"  # field 3: 300
    fragment = b"\x08\x04" + part(2, part(1, b"a.lance")) + part(3, b"\x10\x05\x18\x09")  # number 4; deletion 5, 9
    first = part(2, part(3, b""))  # all numbers are 0, so none is written
    fields = unknown + version + part(2, fragment) + first + part(12, b"300-x.txn")
    (tmp_path / "1.manifest").write_bytes(manifest(fields, before=b"an index"))
    found = read_version(tmp_path / "1.manifest")
    assert found.number == 300
    assert found.read == ["_deletions/0-0-0", "_deletions/4-5-9", "data/a.lance"]
    assert found.stems == {*found.read, "_transactions/300-x.txn"}
    its = ["_deletions/4-5-9.arrow", "_deletions/0-0-0.bin", "data/a.lance"]
    assert belonging([*its, "_deletions/4-5-8.arrow", "data/b.lance", "data/a.lance.tmp"], [found]) == its


NUMBERED = b"\x18\x01"  # field 3: version 1
MALFORMED = {
    "a text for the version": (part(3, b"one"), "a number is missing"),
    "a number for a file": (NUMBERED + part(2, part(2, b"\x08\x01")), "a text is missing"),
    "no version": (b"", "not enough values"),
    "two versions": (NUMBERED * 2, "too many values"),
    "a table elsewhere": (NUMBERED + part(18, b"x"), "files outside of its table"),
    "a file elsewhere": (NUMBERED + part(12, b"../x"), "files outside of its table"),
    "a field of an unknown type": (NUMBERED + b"\x0b", "3"),
    "a longer field than the manifest": (NUMBERED + b"\x12\x05file", "a field is cut off"),
    "a longer field in a fragment": (NUMBERED + part(2, b"\x12\x05file"), "a field is cut off"),
    "a number of eleven bytes": (b"\x18" + b"\x80" * 10 + b"\x01", "a number has no end"),
}


@pytest.mark.parametrize(("fields", "said"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_manifest_is_one_line_that_says_why(tmp_path, fields, said):
    (tmp_path / "1.manifest").write_bytes(manifest(fields))
    with pytest.raises(
        CoevoError, match=f"not a manifest of Lance as it is known here .*{said}.*: nothing was removed"
    ):
        read_version(tmp_path / "1.manifest")


def test_the_largest_number_has_ten_bytes(tmp_path):
    (tmp_path / "1.manifest").write_bytes(manifest(b"\x18" + b"\xff" * 9 + b"\x01"))
    assert read_version(tmp_path / "1.manifest").number == 2**64 - 1


@pytest.mark.parametrize("lost", [1, 4])
def test_a_manifest_that_lost_some_bytes_is_refused(tmp_path, lost):
    (tmp_path / "1.manifest").write_bytes(manifest(NUMBERED)[lost:])
    with pytest.raises(CoevoError, match=r"does not end as a manifest does|not enough values"):
        read_version(tmp_path / "1.manifest")


@pytest.mark.parametrize("beyond", [0, 1])
def test_fields_reach_to_the_end_of_the_file_at_most(tmp_path, beyond):
    whole = manifest(NUMBERED + b"\xf2\x01\x10")  # field 30: 16 bytes, those after it
    size = len(whole) - 4 + beyond
    (tmp_path / "1.manifest").write_bytes(size.to_bytes(4, "little") + whole[4:])
    if beyond:
        with pytest.raises(CoevoError, match="does not end as a manifest does"):
            read_version(tmp_path / "1.manifest")
    else:
        assert read_version(tmp_path / "1.manifest").number == 1


@pytest.mark.parametrize("end", [b"LANB", b"LAND", b"lanc"])
def test_a_file_that_ends_otherwise_is_no_manifest(tmp_path, end):
    (tmp_path / "1.manifest").write_bytes(manifest(NUMBERED)[:-4] + end)
    with pytest.raises(CoevoError, match="does not end as a manifest does"):
        read_version(tmp_path / "1.manifest")


def test_newer_manifests_are_listed_first():
    assert manifest_name(1) == "_versions/18446744073709551614.manifest"
    assert manifest_name(2) < manifest_name(1)


def test_a_mirror_has_copies_of_manifests_and_links_to_all_other_files(tmp_path):
    table, into = tmp_path / "table", tmp_path / "mirror"
    for name in ("_versions/1.manifest", "data/a.lance", "data/b.lance"):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_text(name)
    (table / "data/c.lance").mkdir()
    (tmp_path / "other").write_text("other")
    names = ["_versions/1.manifest", "data/a.lance", "data/c.lance"]
    mirror(table, into, names, {"data/b.lance": tmp_path / "other"})
    assert not (into / "_versions/1.manifest").is_symlink()
    assert (into / "data/a.lance").is_symlink()
    assert (into / "data/b.lance").read_text() == "other"
    assert not (into / "data/c.lance").exists()


@pytest.mark.timeout(20)
def test_a_number_without_measure_is_refused_at_once(tmp_path):
    folder = tmp_path / "entries.lance" / "_versions"
    folder.mkdir(parents=True)
    (folder / "1.manifest").write_bytes(manifest(b"\x18" + b"\xff" * 4_000_000))
    with pytest.raises(CoevoError, match="a number has no end"):
        check_enclosed(tmp_path)


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_manifest_has_at_most_64_mib(tmp_path, beyond):
    size = 2**26 + beyond
    rest = size - 28  # without 20 bytes around the fields and 8 before the rest of these
    length = bytes([rest & 127 | 128, rest >> 7 & 127 | 128, rest >> 14 & 127 | 128, rest >> 21])
    with (tmp_path / "1.manifest").open("wb") as file:
        file.write((size - 20).to_bytes(4, "little") + NUMBERED + b"\xf2\x01" + length)
        file.truncate(size - 16)
        file.seek(size - 16)
        file.write(manifest(b"")[-16:])
    if beyond:
        with pytest.raises(CoevoError, match="does not end as a manifest does"):
            read_version(tmp_path / "1.manifest")
    else:
        assert read_version(tmp_path / "1.manifest").number == 1
