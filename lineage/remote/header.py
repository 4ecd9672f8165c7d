"""Header of a git bundle: its references, and the number of objects that follow. Read before git reads the bundle."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from coevo.lineage.remote.remote_store import LIMIT
from coevo.lineage.revision.tags import TAG
from coevo.utilities.errors import CoevoError

SIGNATURE = b"# v2 git bundle\n"
PACK = b"\n\nPACK\0\0\0\x02"
OBJECTS = 500_000
MAIN = "refs/heads/main"
RECORD = "refs/coevo/run"
REVISION = re.compile(r"refs/(tags|dropped)/r(0|[1-9][0-9]{0,6})")
LINE = re.compile(r"([0-9a-f]{40}) (\S+)")
PREFIX = "refs/tags/"


@dataclass(frozen=True)
class Header:
    """References of a bundle.

    Attributes:
        refs: name of each reference -> its object.
    """

    refs: Mapping[str, str]

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Parse the header of a bundle.

        Raises:
            CoevoError: it is not a bundle, too large, or has references that coevo never writes.
        """
        if len(content) > LIMIT:
            raise CoevoError(f"it has more than {LIMIT} bytes")
        head, found, pack = content.partition(PACK)
        if not content.startswith(SIGNATURE) or not found or len(pack) < 4:
            raise CoevoError("it is not a git bundle of version 2")
        if int.from_bytes(pack[:4], "big") > OBJECTS:
            raise CoevoError(f"it has more than {OBJECTS} objects")
        return cls(checked(_refs(head)))


def _refs(head: bytes) -> dict[str, str]:
    lines = head.removeprefix(SIGNATURE).decode(errors="replace").split("\n")
    rows = [LINE.fullmatch(line) for line in lines]
    refs = {row[2]: row[1] for row in rows if row}
    if len(refs) != len(lines):
        raise CoevoError("its list of references is malformed")
    return refs


def checked(refs: Mapping[str, str]) -> Mapping[str, str]:
    """Check that all references are of kinds that coevo writes, and return them.

    Raises:
        CoevoError: one is not, or the branch or the record is missing.
    """
    for name in refs:
        if name not in ("HEAD", MAIN, RECORD) and not REVISION.fullmatch(name) and not _is_name(name):
            raise CoevoError(f"it has the reference {name[:200]!r}, which coevo never writes")
    lacking = [name for name in (MAIN, RECORD) if name not in refs]
    if lacking:
        raise CoevoError(f"it has no {lacking[0]}")
    return refs


def _is_name(ref: str) -> bool:
    name = ref.removeprefix(PREFIX)
    return ref != name and bool(TAG.fullmatch(name)) and not re.fullmatch(r"r\d+", name) and not name.isdecimal()
