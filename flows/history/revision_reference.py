"""``RUN``, ``RUN@N`` and ``RUN@TAG`` on the command line, and reading a run at that revision.

Readers take no lock and do not touch the run's work tree: manifests come from its commits, the bank from versions of
its tables, episodes from the cache. Therefore they work while the run continues.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from coevo.flows.history.history import check, trail
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import holder
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import ranges
from coevo.lineage.run_history import Dropped
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.records.entry import wording
from coevo.utilities.errors import CoevoError, unknown

if TYPE_CHECKING:
    import pyarrow as pa

    from coevo.configs.run_config import RunConfig
    from coevo.memory.bank.bank import BankView

WRITTEN = re.compile(r"(?P<run>[^@\s]+)(@((?P<revision>[0-9]{1,9})|(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]*)))?")
EPISODE_COLUMNS = ("id", "task_id", "instruction", "revision", "success", *(
    f"turns.list.element.{name}" for name in ("action", "feedback", "retrieved")
))  # fmt: skip
SHORTEST = 4
"""Fewest characters of an id that stand for it, where no other id begins with them."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A run and one of its revisions by number or tag; None for the last one."""

    run: str
    revision: int | str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``RUN``, ``RUN@N`` or ``RUN@TAG``.

        Raises:
            CoevoError: the text has another form.
        """
        found = WRITTEN.fullmatch(text)
        if found is None:
            raise CoevoError(f"{text!r}: write RUN, or RUN@N for its revision N, for example first@12, or RUN@TAG")
        return cls(found["run"], int(found["revision"]) if found["revision"] else found["tag"])

    def number(self, lineage: Lineage) -> int | None:
        """Number of the revision, which need not exist; None for the last one.

        Raises:
            CoevoError: the run has no such tag.
        """
        if not isinstance(self.revision, str):
            return self.revision
        known = lineage.history.names()
        if self.revision not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none, see `coevo tag --help`"
            raise CoevoError(f"tag {self.revision!r} is not in run {self.run!r}: {has}")
        return known[self.revision]


class Reading:
    """A run at one revision."""

    def __init__(self, paths: RunPaths, lineage: Lineage, history: list[Manifest]) -> None:
        """``history``: revisions up to the one to read."""
        self.paths = paths
        self.lineage = lineage
        self.history = history

    @property
    def name(self) -> str:
        """``RUN@N``."""
        return f"{self.paths.name}@{self.manifest.revision}"

    @property
    def manifest(self) -> Manifest:
        """Manifest of the revision."""
        return self.history[-1]

    @cached_property
    def config(self) -> "RunConfig":
        """Resolved configuration of the revision."""
        from coevo.configs.load.load import validate

        return validate(dict(self.manifest.state["config"]), source=self.name)

    def bank(self, revision: int | None = None) -> "BankView":
        """The bank at this revision, or at an earlier one.

        Raises:
            CoevoError: the run has no bank, the revision was dropped, or its versions are missing.
        """
        from coevo.memory.bank.bank import StoredBank

        manifest = self.manifest if revision is None else self.history[revision]
        self.lineage.history.require(manifest.revision)
        if manifest.state["config"]["bank"] is None:
            raise CoevoError(f"run {self.paths.name!r} has no bank (bank = null): choose a run of another method")
        bank = StoredBank(self.paths.bank)
        where = f"run {self.paths.name!r}, revision {manifest.revision}: "
        try:
            return bank.at(manifest.versions, manifest.tables, where)
        except CoevoError as error:
            with suppress(CoevoError):
                if bank.hashes() == manifest.tables:  # Lance's cleanup gives the last version another number
                    return bank
            raise CoevoError(f"{where}{error}") from error

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Training episodes that led to this revision, as rows of ``EPISODE_COLUMNS``, oldest first.

        Those of ``episodes_gone`` are omitted.
        """
        for table in self.episode_tables(EPISODE_COLUMNS):
            yield from table.to_pylist()

    def episode_tables(self, columns: Sequence[str], revisions: Container[int] | None = None) -> "Iterator[pa.Table]":
        """The episodes as tables of some columns, one per revision; optionally only those of ``revisions``.

        Lost episodes are left out.
        """
        from pyarrow import compute, parquet

        # A rollback has the episodes of the restored revision: they are read once.
        kept = set(self.lineage.history.retained())
        contents = {
            manifest.artifacts["episodes"]: manifest
            for manifest in reversed(trail(self.history))
            if "episodes" in manifest.artifacts and manifest.revision in kept
        }
        for manifest in sorted(contents.values(), key=lambda manifest: manifest.revision):
            if revisions is None or manifest.revision in revisions:
                file = self.lineage.artifacts.files(manifest, "episodes")["episodes.parquet"]
                stored = parquet.ParquetFile(file)
                lost = [name for name in ("lost",) if name in stored.schema_arrow.names]
                table = stored.read([*columns, *lost])
                yield table.filter(compute.equal(table["lost"], "")).drop_columns(lost) if lost else table

    def episodes_gone(self) -> list[int]:
        """Revisions that led to this one and whose episodes were dropped."""
        kept = set(self.lineage.history.retained())
        led = [manifest for manifest in trail(self.history) if "episodes" in manifest.artifacts]
        left = {manifest.artifacts["episodes"] for manifest in led if manifest.revision in kept}
        return [m.revision for m in led if m.revision not in kept and m.artifacts["episodes"] not in left]


@contextmanager
def reading(text: str, workspace: Workspace) -> Iterator[Reading]:
    """Open the run and revision named by ``RUN``, ``RUN@N`` or ``RUN@TAG``.

    Raises:
        CoevoError: the reference is malformed, the run, the revision or the tag does not exist, or the block failed
            while gc dropped revisions.
    """
    reference = Reference.parse(text)
    paths = workspace.existing(reference.run)
    if not paths.lineage.exists():
        raise CoevoError(_nothing_yet(paths))
    with Lineage.open(paths.lineage, workspace.cache) as lineage, _beside_gc(lineage, paths.name):
        yield Reading(paths, lineage, _until(reference, paths, lineage))


@contextmanager
def _beside_gc(lineage: Lineage, run: str) -> Iterator[None]:
    """Name a collection that dropped revisions meanwhile as the cause of an error, which would else tell of damage."""
    before = lineage.tags.dropped()
    try:
        yield
    except Dropped:
        raise
    except (CoevoError, OSError) as error:
        gone = lineage.tags.dropped() - before
        if not gone:
            raise
        raise CoevoError(
            f"run {run!r}: gc dropped revisions {ranges(sorted(gone))} while they were read: repeat the command"
        ) from error


def _until(reference: Reference, paths: RunPaths, lineage: Lineage) -> list[Manifest]:
    history = lineage.history.log()
    if not history:
        raise CoevoError(_nothing_yet(paths))
    check(history)
    last, wanted = history[-1].revision, reference.number(lineage)
    if wanted is not None and wanted > last:
        raise CoevoError(f"revision {wanted} is not in run {reference.run!r}: it has 0 to {last}")
    return history if wanted is None else history[: wanted + 1]


def _nothing_yet(paths: RunPaths) -> str:
    process = holder(paths)
    remedy = f"continue it with `coevo resume {paths.name}`" if process is None else f"process {process} works on it"
    return f"run {paths.name!r} has no revision yet: wait for its first one, {'or ' if process is None else ''}{remedy}"


def find_entry(text: str, lessons: Mapping[str, str]) -> str:
    """The one id that is ``text``, begins with it if that has ``SHORTEST`` characters, or whose lesson it is.

    Args:
        text: as a user wrote it.
        lessons: text of each lesson, by the id of its entry.

    Raises:
        CoevoError: none does, several do, or ``text`` is too short to stand for an id.
    """
    known = sorted(lessons)
    if text in lessons:
        return text
    worded = [each for each in known if text and wording(lessons[each]) == wording(text)]
    if len(worded) > 1:
        raise CoevoError(f"{text!r} is the lesson of {', '.join(worded[:3])}: write the id of one of them")
    found = worded or [each for each in known if text and each.startswith(text)]
    if worded or (len(found) == 1 and len(text) >= SHORTEST):
        return found[0]
    if found:
        named = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise CoevoError(f"{text!r} is no id of an entry, only the beginning of {named}: write more of it")
    hint = "`coevo bank show` lists the ids, `coevo bank search` finds lessons by their words"
    raise CoevoError(unknown("entry", text, known, hint))


def lessons_of(bank: "BankView") -> dict[str, str]:
    """Lessons by the ids of all entries that a bank holds, retired ones included, or has ever judged."""
    judged = {candidate.id: candidate.strategy for batch in bank.judged() for candidate in batch.candidates}
    return judged | {entry.id: entry.strategy for entry in bank.entries()}
