"""Manifests of Lance from outside are read in bounded time and memory."""

import pytest

from coevo.configs.errors import CoevoError
from coevo.memory.bank.files import MAGIC, check_enclosed, read_version


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
