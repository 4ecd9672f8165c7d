"""The manifest as text."""

import dataclasses

import pytest

from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.revision.manifest import Manifest, write_manifest
from coevo.utilities.errors import CoevoError


def manifest(**state):
    return Manifest.of({"revision": 3, "iteration": 7, "parent": 2, "restored_from": None, **state}, {"tables": {}})


def test_text_is_canonical():
    assert Manifest.of({"b": 1, "a": ["ü", (0.1,)]}, {}).text() == (
        '{\n "observed": {},\n "state": {\n  "a": [\n   "ü",\n   [\n    0.1\n   ]\n  ],\n  "b": 1\n }\n}\n'
    )
    assert manifest(a=1, b=2).text() == manifest(b=2, a=1).text()


def test_reading_gives_what_was_written(tmp_path):
    written = manifest(metrics={"kl": 1e-17, "n": 3}, pair=(1, 2))
    write_manifest(written, tmp_path / "manifest.json")
    assert Manifest.parse((tmp_path / "manifest.json").read_text()) == written
    assert (written.revision, written.iteration, written.parent, written.restored_from) == (3, 7, 2, None)


def test_a_manifest_cannot_be_replaced_in_part():
    with pytest.raises(dataclasses.FrozenInstanceError):
        manifest().state = {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_named(value):
    with pytest.raises(CoevoError, match=r"state\.metrics\.by_panel\[1\] = "):
        manifest(metrics={"by_panel": [0.5, value]})


def test_an_atomic_write_leaves_nothing_beside(tmp_path):
    path = tmp_path / "file"
    for text in ("one\n", "two\n"):
        write_atomically(path, text)
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_nor_does_one_that_fails(tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "directory", "one\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "file", "\ud800")
    assert list(tmp_path.iterdir()) == [tmp_path / "directory"]
