"""Check that the cache has every artifact of every kept revision, with the right content."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coevo.lineage.findings import Finding, lost, mendable
from coevo.lineage.fsck.donors import CheckedCache, Donors
from coevo.lineage.fsck.history_check import Revision
from coevo.lineage.objects.cache import LISTING

Uses = Mapping[str, Sequence[tuple[int, str]]]
"""Content hash -> each revision that needs the object, with its name there, such as ``policy/weights``."""


def uses(objects: CheckedCache, kept: Sequence[Revision], busy: bool = False) -> Uses:
    """Objects that the revisions need. Files of an invalid listing are left out: they are unknown.

    Args:
        objects: of the cache.
        kept: revisions that were not dropped.
        busy: True if a process may be making a newer revision, which takes the place of the last one.
    """
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    last = max((revision.number for revision in kept), default=0) + busy
    artifacts = [(revision.number, *item) for revision in kept for item in revision.manifest.kept(last).items()]
    objects.examine(content for _, _, content in artifacts if content.endswith(LISTING))
    for number, name, content in artifacts:
        found[content].append((number, name))
        if content.endswith(LISTING) and objects.problem(content) is None:
            for path, inner in objects.files(content).items():
                found[inner].append((number, f"{name}/{path}"))
    objects.examine(found)
    return found


def check_artifacts(donors: Donors, kept: Sequence[Revision], run: str, busy: bool) -> Iterator[Finding]:
    """Report each object that is missing or corrupt; ``busy`` as in ``uses``."""
    objects = donors.objects
    for content, needed in uses(objects, kept, busy).items():
        problem = objects.problem(content)
        if problem is None:
            continue
        numbers = ", ".join(str(number) for number in dict.fromkeys(number for number, _ in needed))
        what = f"{needed[0][1]} of revision {numbers} is {problem} in the cache ({_short(objects, content)})"
        subject = f"{run}@{needed[0][0]}"
        if donors.of(content, Path(needed[0][1])) is None:
            yield lost(subject, what, f"no other copy found: restore it from a remote (`coevo pull`) or a backup of "
                       f"{objects.root}")  # fmt: skip
        else:
            yield mendable(subject, what, "takes it from a valid copy")


def mend_artifacts(donors: Donors, kept: Sequence[Revision]) -> None:
    """Restore objects from other copies; listings first, since they name the files that are needed."""
    objects = donors.objects
    for listings in (True, False):
        for content, needed in uses(objects, kept).items():
            if content.endswith(LISTING) == listings and objects.problem(content) is not None:
                donors.restore(content, Path(needed[0][1]))
                objects.forget(content)


def _short(objects: CheckedCache, content: str) -> str:
    return objects.path(content).relative_to(objects.root.parent).as_posix()
