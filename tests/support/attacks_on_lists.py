"""Attacks by whoever owns a remote that lie in what a sound history names: lists of files, and sizes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import lancedb
import pyarrow as pa


def pointer_of_another_size(it):
    text = it.show("policy.dvc")
    size = next(line for line in text.splitlines() if "size:" in line)
    it.replace({"policy.dvc": ("100644", text.replace(size, "  size: 12345678"))})


def _bank(*rows):
    def attack(it):
        it.record(bank=it.object([{"md5": it.object(b"x"), "relpath": path} for path in rows], ".dir"))

    return attack


def _artifact(*rows):
    def attack(it):
        listed = [{"md5": it.object(b"x"), "relpath": path} for path in rows]
        it.point("policy", it.object(listed, ".dir"), len(rows), len(rows))

    return attack


def table_that_reads_elsewhere(it):
    with TemporaryDirectory() as made:
        lancedb.connect(f"{made}/victim").create_table("entries", pa.table({"id": ["secret"]}))
        lancedb.connect(f"{made}/lure").clone_table("entries", f"{made}/victim/entries.lance")
        (manifest,) = Path(made, "lure").rglob("*.manifest")
        row = {"md5": it.object(manifest.read_bytes()), "relpath": f"entries.lance/_versions/{manifest.name}"}
    it.record(bank=it.object([row], ".dir"))


def list_that_is_none(it):
    it.point("policy", it.object({"relpath": "x"}, ".dir"), 1, 1)


def list_of_objects_elsewhere(it):
    it.point("policy", it.object([{"md5": "../../../outside/x", "relpath": "a"}], ".dir"), 1, 1)


def content_of_another_size(it):
    it.point("policy", it.object([{"md5": it.object(b"x"), "relpath": "weights"}], ".dir"), 5, 1)


OUTWARD = ("../../../../outside/precious", "/etc/passwd", "a\0b", 7, "a/../b", "./a", "", "a\nb", None, "x" * 300)
LISTS = [
    *((f"list of an artifact: {path!r}"[:40], _artifact(path), "a file outside of its directory") for path in OUTWARD),
    ("list of an artifact: a file twice", _artifact("a", "a"), "is not a list of files"),
    ("list of an artifact: a file as a folder", _artifact("a", "a/b"), "as a file and as a directory"),
    *((f"list of the bank: {path!r}"[:40], _bank(path), "a file outside of its directory") for path in OUTWARD[:4]),
    *(
        (f"list of an artifact: {path!r}", _artifact(path), "or a hidden one")
        for path in (".git/config", "a/.dvcignore")
    ),
    ("list of the bank: '.git/config'", _bank("entries.lance/.git/config"), "or a hidden one"),
    ("list of the bank: beside the tables", _bank("hooks/x"), "its list of the bank's files names 'hooks/x'"),
    ("table that reads elsewhere", table_that_reads_elsewhere, "it names files outside of its table"),
    ("list that is none", list_that_is_none, "is not a list of files"),
    ("list of objects elsewhere", list_of_objects_elsewhere, "is not a list of files"),
    ("content of another size", content_of_another_size, "policy.dvc says 1 files and 5 bytes"),
    ("pointer of another size", pointer_of_another_size, "policy.dvc says 1 files and 12345678 bytes"),
]
"""The same for what is seen in what the history names."""
