"""Cases of damage to the files of a bank, drawn by number: a kind of file, one of that kind, and what is done to it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from coevo.memory.bank.lance_files import manifest_name, versions
from coevo.records.draws import generator, key

TABLES = ("entries", "stats", "verdicts", "operations", "clusters")
HINT = "_versions/latest_version_hint.json"


def flip(low, high):
    """Flip a bit somewhere between two parts of the file."""

    def flipped(path, draw):
        content = bytearray(path.read_bytes())
        at = int(draw.integers(int(low * len(content)), max(1, int(high * len(content)))))
        content[at] ^= 1 << int(draw.integers(8))
        path.write_bytes(content)

    return flipped


def footer(path, draw):
    content = bytearray(path.read_bytes())
    content[-1 - int(draw.integers(min(40, len(content))))] ^= 1 << int(draw.integers(8))
    path.write_bytes(content)


def cut(part):
    def shortened(path, _):
        content = path.read_bytes()
        path.write_bytes(content[: min(int(part * len(content)), len(content) - 1)])

    return shortened


def lose(path, _):
    path.unlink()


def directory(path, _):
    path.unlink()
    path.mkdir()


def pipe(path, _):
    path.unlink()
    os.mkfifo(path)


HARMS = {
    "flip at the beginning": flip(0, 0.2),
    "flip in the middle": flip(0.2, 0.8),
    "flip in the footer": footer,
    "cut to nothing": cut(0),
    "cut in half": cut(0.5),
    "cut the last byte": cut(1),
    "gone": lose,
    "a directory": directory,
    "a pipe": pipe,
}
KINDS = ("data", "manifest", "transaction", "hint")
"""Kinds of files that the tables of a bank have here; nothing that is written makes deletion files or indices."""


@dataclass(frozen=True)
class Case:
    """A file that is damaged.

    Attributes:
        table: its table.
        file: the file, relative to the table.
        harm: what is done to it.
        needed: versions of the table that need the file.
    """

    table: str
    file: str
    harm: str
    needed: frozenset

    @property
    def path(self):
        """The file, relative to the bank."""
        return f"{self.table}.lance/{self.file}"

    def apply(self, bank, number):
        HARMS[self.harm](bank / self.path, generator(key("damaged bank", number)))

    def copy_in(self, bank):
        """The file's content there, None where there is none."""
        return (bank / self.path).read_bytes() if (bank / self.path).is_file() else None


def case(number, bank):
    """The case with this number, for a bank that is whole; every four are of each kind, every nine of each harm."""
    kind, harm = KINDS[number % len(KINDS)], [*HARMS][number % len(HARMS)]
    draw = generator(key("case", number))
    files = [(table, file, needed) for table in TABLES for file, needed in _files(bank / f"{table}.lance", kind)]
    table, file, needed = files[int(draw.integers(len(files)))]
    return Case(table, file, harm, frozenset(needed))


def _files(table, kind):
    """Files of a kind with the versions that need them, in an order that does not depend on their random names."""
    found = versions(table)
    if kind == "hint":
        return [(HINT, ())]
    if kind == "manifest":
        return [(manifest_name(version.number), (version.number,)) for version in found]
    folder = {"data": "data/", "transaction": "_transactions/"}[kind]
    by_file = {}
    for version in found:
        for stem in version.stems:
            if stem.startswith(folder):
                by_file.setdefault(stem, []).append(version.number)
    return [(file, () if kind == "transaction" else numbers) for file, numbers in sorted(by_file.items(), key=_first)]


def _first(item):
    return item[1]


def copy(source, root):
    """A workspace like another one, of which no file is a link to the other's."""
    shutil.copytree(source, root, copy_function=_copied)
    return Path(root)


def _copied(source, target):
    return os.mkfifo(target) if Path(source).is_fifo() else shutil.copy2(source, target)
