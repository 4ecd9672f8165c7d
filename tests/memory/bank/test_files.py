"""Manifests of Lance from outside are read in bounded time and memory."""

import pytest

from coevo.configs.errors import CoevoError
from coevo.memory.bank.files import MAGIC, check_enclosed, manifest_name, mirror, read_version


def manifest(fields):
    """A file with these bytes as the fields of a manifest."""
    return len(fields).to_bytes(4, "little") + fields + (0).to_bytes(8, "little") + bytes(4) + MAGIC


def part(field, content):
    """A field of bytes, in the encoding of protocol buffers."""
    return bytes([field << 3 | 2, len(content)]) + content


def test_number_and_files_are_found_among_fields_of_every_type(tmp_path):
    unknown = b"\xf1\x01" + b"\xff" * 8 + b"\xfd\x01" + b"\xff" * 4  # fields 30 and 31, of fixed 8 and 4 bytes
    version = b"\x18\xac\x02"  # field 3: 300
    fragment = b"\x08\x04" + part(2, part(1, b"a.lance")) + part(3, b"\x10\x05\x18\x09")  # number 4; deletion 5, 9
    (tmp_path / "1.manifest").write_bytes(manifest(unknown + version + part(2, fragment) + part(12, b"300-x.txn")))
    found = read_version(tmp_path / "1.manifest")
    assert found.number == 300
    assert found.read == ["_deletions/4-5-9", "data/a.lance"]
    assert found.stems == {*found.read, "_transactions/300-x.txn"}
    assert [found.needs(name) for name in ("_deletions/4-5-9.arrow", "data/b.lance")] == [True, False]


NUMBERED = b"\x18\x01"  # field 3: version 1
MALFORMED = {
    "a text for the version": (part(3, b"one"), "a number is missing"),
    "a number for a file": (NUMBERED + part(2, part(2, b"\x08\x01")), "a text is missing"),
    "no version": (b"", "not enough values"),
    "two versions": (NUMBERED * 2, "too many values"),
    "a table elsewhere": (NUMBERED + part(18, b"x"), "files outside of its table"),
    "a file elsewhere": (NUMBERED + part(12, b"../x"), "files outside of its table"),
    "a field of an unknown type": (NUMBERED + b"\x0b", "3"),
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
@pytest.mark.parametrize(
    ("fields", "said"),
    [(b"\x18" + b"\xff" * 4_000_000, "a number has no end"), (bytes(2**26 + 1), "does not end as a manifest does")],
    ids=["number", "size"],
)
def test_a_manifest_without_measure_is_refused_at_once(tmp_path, fields, said):
    folder = tmp_path / "entries.lance" / "_versions"
    folder.mkdir(parents=True)
    (folder / "1.manifest").write_bytes(manifest(fields))
    with pytest.raises(CoevoError, match=said):
        check_enclosed(tmp_path)
