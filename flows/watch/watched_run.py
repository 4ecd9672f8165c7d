"""A run as the pages see it: its index, its status, its episodes, and what waits for approval."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from coevo.flows.engine_load import engine_load, load_lines, server_logs
from coevo.flows.history.revision_reference import Reading
from coevo.flows.history.run_summaries import DAMAGE, RunSummary
from coevo.flows.history.stored_episodes import stored_episodes
from coevo.flows.watch.index_build import MAX_FAULT_CHARS, RunIndex
from coevo.flows.watch.index_queries import IndexReader
from coevo.flows.watch.seen_history import DROPPED, marks
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import holder
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import RunStatus, read_record
from coevo.lineage.trust import FILE as TRUSTED
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import BankView, StoredBank
from coevo.models.policy.decoder import Decoder
from coevo.tasks.publish.reporter import LivePhases, read_phases
from coevo.tasks.writing.artifact import ANSWERS
from coevo.tasks.writing.artifact import FOLDER as WRITING
from coevo.tasks.writing.journal import Answered, parse
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.run_config import RunConfig
    from coevo.records.episode import Episode

BRANCH = ".git/refs/heads/main"
"""File that changes with each commit of a lineage."""


FIRST_WAIT_S = 5.0
"""Seconds that a page waits for the first revisions of an index."""


class NotIndexedError(CoevoError):
    """The index holds no revision yet."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Status of a run for its pages.

    Attributes:
        status: its status, stage and reason.
        notes: what else a reader has to know, in lines: why it cannot be read, and where it comes from.
        phases: of the iteration in progress; None where no process works on it.
        engines: load of its vLLM servers, in lines; none where no process works on it.
    """

    status: RunStatus
    notes: tuple[str, ...]
    phases: LivePhases | None
    engines: tuple[str, ...] = ()


class WatchedRun:
    """One run of a workspace, read without its locks."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        """The run need not be sound, but has to be there.

        Raises:
            CoevoError: there is no such run.
        """
        self.workspace = workspace
        self.paths: RunPaths = workspace.run(name)
        if name not in {each.name for each in workspace.directories()}:
            raise workspace.no_run(name)
        self.index = RunIndex(self.paths)
        self.fault: str | None = None
        self._files = [str(self.paths.lineage / name) for name in (BRANCH, *DROPPED)]
        self._lock = Lock()
        self._builder: Thread | None = None
        self._seen: tuple[int, ...] | None = None
        self._is_broken = False
        self._settings: tuple[tuple[int, ...], RunConfig, str] | None = None
        self._head: tuple[tuple[int, ...], Manifest] | None = None
        self._engines: tuple[tuple[int, ...], tuple[str, ...]] | None = None

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.paths.name

    def refresh(self, wait: float = 0.5) -> None:
        """Take up new revisions beside the caller, who waits so many seconds; the first time for longer."""
        with self._lock:
            now = self.changed()
            if self.is_current(now):
                return
            if self._builder is None or not self._builder.is_alive():
                self._builder = Thread(target=self._update, args=(now,), name="index", daemon=True)
                self._builder.start()
            builder = self._builder
        builder.join(max(wait, FIRST_WAIT_S) if self._seen is None else wait)

    def is_current(self, now: tuple[int, ...] | None = None) -> bool:
        """True if the index was made of the history as it is now, whose marks may be given."""
        return (self.changed() if now is None else now) == self._seen and self.index.file.exists()

    def _update(self, now: tuple[int, ...]) -> None:
        try:
            self.paths.check_created()
            if self.paths.lineage.exists():
                if self.index.update(anew=self._is_broken) and self.index.last is not None:
                    self._head = self._index_marks(), self.index.last
                self._is_broken = False
            self.fault = None
        except (*DAMAGE, sqlite3.Error) as error:
            self.fault = " ".join(str(error).split())[:MAX_FAULT_CHARS] or type(error).__name__
        self._seen = now

    def changed(self) -> tuple[int, ...]:
        """Marks of the files that change with a commit and with a dropped revision."""
        return marks(*self._files)

    @contextmanager
    def reader(self, revision: int | None = None) -> Iterator[IndexReader]:
        """The index at a revision; one that is damaged is built again, and the page asks to repeat.

        Raises:
            NotIndexedError: there is no revision in it yet, or it was damaged.
        """
        try:
            with IndexReader.opened(self.index.file, revision) as opened:
                if opened.last < 0:
                    raise NotIndexedError(self.fault or self._absent())
                yield opened
        except sqlite3.DatabaseError as error:
            self._seen = None
            self._is_broken = self._builder is None or not self._builder.is_alive()
            raise NotIndexedError(self.fault or self._absent()) from error

    def _absent(self) -> str:
        """Say why the index has no revision: a run whose branch is there has one."""
        committed = any(self.changed())
        return "the index of the run is being built" if committed else f"{self.name} has no revision yet"

    def head(self) -> Manifest | None:
        """Last revision of the index, read again when the index has changed; None without any."""
        now = self._index_marks()
        if self._head is None or self._head[0] != now:
            try:
                with self.reader() as opened:
                    self._head = now, opened.manifest()
            except CoevoError:
                return None
        return self._head[1]

    def _index_marks(self) -> tuple[int, ...]:
        return marks(self.index.file, self.index.file.with_name(f"{self.index.file.name}-wal"))

    def committed(self) -> Manifest | None:
        """Last revision of the lineage itself, which the index may not have yet; None where it cannot be read."""
        try:
            if not self.paths.lineage.exists():
                return None
            with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
                return lineage.history.head()
        except DAMAGE:
            return None

    def standing(self, head: Manifest | None) -> Standing:
        """Status of the run, whose last revision is ``head``."""
        process, notes = None, [] if self.fault is None else [f"The run is damaged or cannot be read: {self.fault}"]
        try:
            process, (config, names) = holder(self.paths), self._configured()
            if names:
                notes.append(f"The run comes from elsewhere: {names} is not confirmed; coevo resume asks.")
            summary = RunSummary(
                self.paths, config, [] if head is None else [head], process, record=read_record(self.paths)
            )
        except DAMAGE as error:
            summary = RunSummary(self.paths, None, (), process, " ".join(str(error).split())[:MAX_FAULT_CHARS])
        if process is None:
            return Standing(summary.status, tuple(notes), None)
        return Standing(summary.status, tuple(notes), read_phases(self.paths), self._loads())

    def _loads(self) -> tuple[str, ...]:
        """Load of the engines; read again when a log has changed."""
        try:
            now = marks(*server_logs(self.paths.engine))
            if self._engines is None or self._engines[0] != now:
                self._engines = now, load_lines(list(engine_load(self.paths.engine)))
        except OSError:
            return ()
        return self._engines[1]

    def _configured(self) -> "tuple[RunConfig, str]":
        """Configuration, and names of the settings that nobody has confirmed; read again when a file has changed."""
        now = marks(self.paths.config, self.workspace.root / TRUSTED)
        if self._settings is None or self._settings[0] != now:
            config = self.paths.read_config()
            questions = self.workspace.trust.open_questions(self.name, config)
            self._settings = now, config, ", ".join(each.name for each in questions)
        return self._settings[1:]

    @contextmanager
    def at(self, manifest: Manifest) -> Iterator[Reading]:
        """Reading of the run at one revision, without its history."""
        with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
            yield Reading(self.paths, lineage, [manifest])

    def episodes(
        self, manifest: Manifest, training: bool, ids: Collection[str]
    ) -> dict[str, tuple["Episode", str, str, str]]:
        """Episodes of a revision by id, each with panel, reason and part of its lessons.

        Raises:
            CoevoError: they are gone, or cannot be read.
        """
        with self.at(manifest) as opened:
            return {row[0].id: row for row in stored_episodes(opened, training, ids)}

    def decoder(self) -> Decoder:
        """Text of prompts; it needs the tokenizer of the policy."""
        return Decoder(self.paths.lineage / "policy")

    def bank(self, manifest: Manifest) -> BankView:
        """The bank at a revision.

        Raises:
            CoevoError: it is gone, or cannot be read.
        """
        return StoredBank(self.paths.bank).at(manifest.versions, manifest.tables)

    def answers(self, manifest: Manifest, sources: Collection[str]) -> list[Answered]:
        """Answers of the writer model in a revision to questions that showed one of these episodes."""
        if WRITING not in manifest.artifacts:
            return []
        with Lineage.open(self.paths.lineage, self.workspace.cache) as lineage:
            file: Path = lineage.artifacts.files(manifest, WRITING)[ANSWERS]
            found = [parse(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        return [each for each in found if each.revision == manifest.revision and {*each.episodes} & {*sources}]
