"""The index of a run: an SQLite file derived from the lineage, for pages that answer at once. It may be deleted.

It belongs to one creation of a run and to ``VERSION`` of its tables; one that is older, damaged or of another history
is built again. A revision enters it with one transaction, so that readers see whole revisions. The bank is kept as the
spans in which an entry had one content: since one revision, until another.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock, Timeout

from coevo.flows.history.expenses import expense_of
from coevo.flows.history.history import bank_sizes, check, happened, predecessor, time_of
from coevo.flows.history.success import held_out_success, training_success
from coevo.flows.watch.bank_walk import EMPTY, TABLE, BankStep, KnownRows, ReadRows, walk
from coevo.flows.watch.episode_rows import ARTIFACTS, HELD_OUT, EpisodeBatch, episode_batch
from coevo.flows.watch.seen_history import SeenHistory, marks, seen_history
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import RunPaths
from coevo.memory.bank.bank import StoredBank
from coevo.memory.bank.table import FollowedTable
from coevo.records.entry import Entry
from coevo.tasks.cost import wall_seconds
from coevo.tasks.publish.turn_figures import read_lesson_uses
from coevo.utilities.errors import CoevoError

VERSION = "2"
"""Version of the tables."""
FOLDER = "watch"
"""Folder of the workspace for the indexes."""
BATCH = 200
"""Revisions of one transaction while a whole index is built."""
SERIES = (
    "policy/update/kl", "policy/update/entropy", "policy/update/grad_norm", "policy/update/clip_share",
    "policy/update/mismatch_mean", "policy/update/loss", "policy/advantage/zero_variance_share",
    "policy/advantage/std", "bank/retrieval/task_hits", "bank/retrieval/never_share",
)  # fmt: skip
"""Metrics that are shown over revisions."""
REVISION, SUCCESS, LOST = 7, 8, 13
"""Columns of an episode's row."""
UNREADABLE = (CoevoError, OSError, ValueError, KeyError, TypeError, pa.ArrowException)
"""Exceptions of a damaged part of a revision."""
MAX_FAULT_CHARS = 300
"""Most characters of a fault."""
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE revisions (
    revision INTEGER PRIMARY KEY, iteration INTEGER NOT NULL, predecessor INTEGER, moment TEXT NOT NULL,
    what TEXT NOT NULL, train REAL, train_low REAL, train_high REAL, held REAL, held_low REAL, held_high REAL,
    bank INTEGER, seconds REAL NOT NULL, kept INTEGER NOT NULL, training INTEGER, held_out INTEGER,
    manifest BLOB NOT NULL
);
CREATE TABLE metrics (name TEXT, revision INTEGER, value REAL NOT NULL, PRIMARY KEY (name, revision)) WITHOUT ROWID;
CREATE TABLE expenses (
    revision INTEGER, part TEXT, episodes INTEGER, questions INTEGER, tokens INTEGER, seconds REAL, money REAL,
    PRIMARY KEY (revision, part)
) WITHOUT ROWID;
CREATE TABLE faults (revision INTEGER, part TEXT, fault TEXT NOT NULL, PRIMARY KEY (revision, part)) WITHOUT ROWID;
CREATE TABLE bank (
    id TEXT, since INTEGER, until INTEGER, scope TEXT NOT NULL, content TEXT NOT NULL, folded TEXT NOT NULL,
    PRIMARY KEY (id, since)
) WITHOUT ROWID;
CREATE TABLE contents (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE);
CREATE INDEX spans ON bank (until);
CREATE TABLE lessons (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE episodes (
    content INTEGER, number INTEGER, id TEXT NOT NULL, panel TEXT NOT NULL, kind TEXT NOT NULL, scope TEXT NOT NULL,
    task TEXT NOT NULL, instruction TEXT NOT NULL, replica INTEGER NOT NULL, revision INTEGER NOT NULL,
    success INTEGER NOT NULL, reward REAL NOT NULL, reason TEXT NOT NULL, lessons TEXT NOT NULL, turns INTEGER NOT NULL,
    lost INTEGER NOT NULL, PRIMARY KEY (content, number)
) WITHOUT ROWID;
CREATE TABLE uses (
    lesson INTEGER, content INTEGER, episode INTEGER, PRIMARY KEY (lesson, content, episode)
) WITHOUT ROWID;
CREATE TABLE use_counts (
    lesson INTEGER, content INTEGER, revision INTEGER, shown INTEGER NOT NULL, solved INTEGER NOT NULL,
    PRIMARY KEY (lesson, content, revision)
) WITHOUT ROWID;
"""


def index_file(paths: RunPaths) -> Path:
    """File of a run's index."""
    return paths.workspace.root / FOLDER / f"{paths.name}.sqlite"


class RunIndex:
    """The index of one run, kept by this process unless another one keeps it.

    Attributes:
        last: last revision that this process took up; None before the first.
    """

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self.file = index_file(paths)
        self._rows: tuple[int, KnownRows] | None = None
        self._history: SeenHistory | None = None
        self._left: tuple[int, ...] | None = None
        self._entries = FollowedTable(paths.bank, TABLE)
        self.last: Manifest | None = None

    def update(self, anew: bool = False) -> int:
        """Take up all revisions that are missing, and build the index anew if it does not fit; return their number.

        ``anew`` builds it anew in any case: a reader has found it damaged. Nothing happens while another process keeps
        the index.

        Raises:
            CoevoError: the history of the run cannot be read; the index stays as it is.
        """
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            with FileLock(self.file.with_suffix(".lock"), blocking=False):
                if anew:
                    self.remove()
                return self._updated()
        except Timeout:
            return 0

    def _updated(self) -> int:
        with Lineage.open(self._paths.lineage, self._paths.workspace.cache) as lineage:
            self._history = seen_history(lineage, self._paths.lineage, self._history)
            try:
                added = self._catch_up(lineage, self._history)
            except sqlite3.DatabaseError:
                self.remove()
                added = self._catch_up(lineage, self._history)
        self._left = marks(self.file)
        return added

    def _catch_up(self, lineage: Lineage, history: SeenHistory) -> int:
        commits, kept = history.commits, {*range(len(history.commits))} - history.dropped
        identity = {
            "version": VERSION,
            "created": str(self._paths.moment),
            "dropped": json.dumps(sorted(history.dropped)),
        }
        with closing(self._fitting(commits, identity)) as database:
            new = commits[_last(database) + 1 :]
            manifests = [history.last] if history.last and len(new) == 1 else lineage.history.manifests(new)
            sizes = _sizes(database, manifests)
            for start in range(0, len(manifests), BATCH):
                batch = manifests[start : start + BATCH]
                with _transaction(database):
                    self._add(database, lineage, kept, batch, sizes[start:])
                    _remember(database, {"commit": commits[batch[-1].revision]})
            self.last = manifests[-1] if manifests else self.last
            return len(manifests)

    def _fitting(self, commits: Sequence[str], identity: dict[str, str]) -> sqlite3.Connection:
        """The index as far as it goes, or an empty one in place of one that does not fit."""
        if self.file.exists():
            database = _opened(self.file)
            try:
                if _fits(database, commits, identity, self._left == marks(self.file)):
                    return database
            except sqlite3.DatabaseError:
                pass
            database.close()
            self.remove()
        database = _opened(self.file)
        self._rows = None
        with _transaction(database):
            for statement in SCHEMA.split(";"):
                database.execute(statement)
            _remember(database, identity)
        return database

    def remove(self) -> None:
        """Delete the file; the next update builds it again."""
        for suffix in ("", "-wal", "-shm"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)

    def _add(
        self,
        database: sqlite3.Connection,
        lineage: Lineage,
        kept: set[int],
        manifests: Sequence[Manifest],
        sizes: Sequence[int | None],
    ) -> None:
        for manifest, size in zip(manifests, sizes, strict=False):
            contents = [self._content(database, lineage, manifest, name, kept) for name in ARTIFACTS]
            _add_revision(database, manifest, size, manifest.revision in kept, contents)
        self._add_bank(database, manifests, kept)

    def _add_bank(self, database: sqlite3.Connection, manifests: Sequence[Manifest], kept: set[int]) -> None:
        led = [each for each in manifests if each.state["config"]["bank"] is not None]
        if not led:
            return
        faults = dict[int, str]()
        read = _reader(self._paths, self._entries, kept, faults)
        found = walk(led, self._before(database, manifests[0].revision, read), read)
        for step in found.steps:
            _add_step(database, step)
        self._rows = manifests[-1].revision, found.last
        rows = [(each, "bank", faults.get(each, "dropped by gc")) for each in found.unknown]
        database.executemany("INSERT OR REPLACE INTO faults VALUES (?, ?, ?)", rows)

    def _before(self, database: sqlite3.Connection, first: int, read: ReadRows) -> KnownRows:
        """Rows of the bank before a revision: at the last revision before it whose bank is known."""
        if self._rows is not None and self._rows[0] == first - 1:
            return self._rows[1]
        statement = (
            "SELECT manifest FROM revisions WHERE revision < ? AND revision NOT IN "
            "(SELECT revision FROM faults WHERE part = 'bank') ORDER BY revision DESC LIMIT 1"
        )
        row = database.execute(statement, (first,)).fetchone()
        if row is None:
            return EMPTY
        manifest = _manifest(row[0])
        rows = read(manifest)
        if rows is None:  # the spans are right, and only the bank itself cannot be read any more
            raise sqlite3.DatabaseError("the bank before the new revisions is gone")
        return KnownRows(rows, manifest.tables[TABLE])

    def _content(
        self, database: sqlite3.Connection, lineage: Lineage, manifest: Manifest, artifact: str, kept: set[int]
    ) -> int | None:
        """Number of the episodes of a revision, added if they are new; None where it has none or they are gone."""
        name = manifest.artifacts.get(artifact)
        if name is None or (artifact == HELD_OUT and not manifest.state["outcomes"]):
            return None
        key = f"{artifact}/{name}"
        row = database.execute("SELECT number FROM contents WHERE hash = ?", (key,)).fetchone()
        if row is not None:
            return int(row[0])
        if manifest.revision not in kept:
            return None
        try:
            uses = {} if artifact == HELD_OUT else read_lesson_uses(self._paths, manifest.revision)
            batch = episode_batch(lineage.artifacts.files(manifest, artifact), artifact, uses)
        except UNREADABLE as error:
            fault = " ".join(str(error).split())[:MAX_FAULT_CHARS]
            database.execute("INSERT OR REPLACE INTO faults VALUES (?, ?, ?)", (manifest.revision, artifact, fault))
            return None
        number = int(database.execute("INSERT INTO contents (hash) VALUES (?) RETURNING number", (key,)).fetchone()[0])
        _add_episodes(database, number, batch)
        return number


def _opened(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, isolation_level=None, timeout=30)
    file.chmod(0o600)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = OFF")  # what a power failure spoils is built again
    return database


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _fits(database: sqlite3.Connection, commits: Sequence[str], identity: dict[str, str], is_known: bool) -> bool:
    """True if the file is of this creation and history of the run, and is sound or, if known, as it was left."""
    if not is_known and database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        return False
    known = dict(database.execute("SELECT key, value FROM meta"))
    last = _last(database)
    commit = known.pop("commit", None)
    return known == identity and (last < 0 or (last < len(commits) and commits[last] == commit))


def _sizes(database: sqlite3.Connection, manifests: Sequence[Manifest]) -> list[int | None]:
    """Active entries at new revisions, after a check of the history, or of the new part where nothing else is needed.

    Raises:
        CoevoError: a manifest is not as coevo writes it.
    """
    known = [each.metrics.get("bank/size") for each in manifests]
    if manifests and manifests[0].revision and None not in known:
        return [None if size is None else int(size) for size in known]
    before = [_manifest(row[0]) for row in database.execute("SELECT manifest FROM revisions ORDER BY revision")]
    check(whole := [*before, *manifests])
    return bank_sizes(whole)[len(before) :]


def _last(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT COALESCE(MAX(revision), -1) FROM revisions").fetchone()[0])


def _remember(database: sqlite3.Connection, values: dict[str, str]) -> None:
    database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def _reader(paths: RunPaths, entries: FollowedTable, kept: set[int], faults: dict[int, str]) -> ReadRows:
    def read(manifest: Manifest) -> pa.Table | None:
        if manifest.revision not in kept:
            return None
        try:
            return entries.rows(manifest.versions[TABLE], manifest.tables[TABLE])
        except UNREADABLE as error:
            if (rows := _newest(paths, manifest)) is not None:
                return rows
            faults[manifest.revision] = " ".join(str(error).split())[:MAX_FAULT_CHARS]
            return None

    return read


def _newest(paths: RunPaths, manifest: Manifest) -> pa.Table | None:
    """Rows of the newest version if they are those of a revision: Lance's cleanup gives it another number."""
    try:
        bank = StoredBank(paths.bank)
        return bank.rows() if bank.hashes() == manifest.tables else None
    except UNREADABLE:
        return None


def _add_revision(
    database: sqlite3.Connection, manifest: Manifest, size: int | None, kept: bool, contents: Sequence[int | None]
) -> None:
    number = manifest.revision
    train, held = (
        (None, None, None) if found is None else astuple(found)
        for found in (training_success(manifest), held_out_success(manifest))
    )
    if train[0] is None:  # a single task has no interval
        train = (manifest.metrics.get("agent/success/train"), None, None)
    about = (number, manifest.iteration, predecessor(manifest), time_of(manifest), happened(manifest))
    # Without the indents of its own text, which take Python's encoder in place of that in C.
    blob = zlib.compress(json.dumps({"state": manifest.state, "observed": manifest.observed}).encode(), 1)
    row = (*about, *train, *held, size, wall_seconds(manifest), kept, *contents, blob)
    database.execute(f"INSERT INTO revisions VALUES ({', '.join('?' * len(row))})", row)
    series = [(name, number, manifest.metrics[name]) for name in SERIES if name in manifest.metrics]
    database.executemany("INSERT INTO metrics VALUES (?, ?, ?)", series)
    spent = [
        (number, each.part, each.episodes, each.questions, each.tokens, each.seconds, each.money)
        for each in expense_of(manifest)
    ]
    database.executemany("INSERT INTO expenses VALUES (?, ?, ?, ?, ?, ?, ?)", spent)


def _add_step(database: sqlite3.Connection, step: BankStep) -> None:
    change, number = step.change, step.revision
    ended = [*(was.id for was, _ in change.edited), *(entry.id for entry in change.retired)]
    statement = "UPDATE bank SET until = ? WHERE id = ? AND until IS NULL"
    database.executemany(statement, [(number, name) for name in ended])
    begun = [*change.added, *(new for _, new in change.edited)]
    database.executemany("INSERT INTO bank VALUES (?, ?, NULL, ?, ?, ?)", [_span(entry, number) for entry in begun])


def _span(entry: Entry, since: int) -> tuple[Any, ...]:
    folded = "\n".join((entry.id, entry.strategy, entry.condition, entry.example, entry.keywords, entry.scope))
    return entry.id, since, entry.scope, json.dumps(asdict(entry), sort_keys=True), folded.casefold()


def _add_episodes(database: sqlite3.Connection, content: int, batch: EpisodeBatch) -> None:
    marks = ", ".join("?" * 16)
    rows = ((content, number, *row) for number, row in enumerate(batch.rows))
    database.executemany(f"INSERT INTO episodes VALUES ({marks})", rows)
    names = sorted({name for _, name in batch.uses})
    database.executemany("INSERT OR IGNORE INTO lessons (id) VALUES (?)", [(name,) for name in names])
    named = "SELECT id, number FROM lessons WHERE id IN (SELECT value FROM json_each(?))"
    numbers = dict(database.execute(named, (json.dumps(names),)))
    uses = [(numbers[name], content, episode) for episode, name in batch.uses]
    database.executemany("INSERT INTO uses VALUES (?, ?, ?)", uses)
    counts = dict[tuple[int, int], list[int]]()
    for lesson, _, episode in uses:
        row = batch.rows[episode]
        if not row[LOST]:
            count = counts.setdefault((lesson, row[REVISION]), [0, 0])
            count[0] += 1
            count[1] += bool(row[SUCCESS])
    totals = [(lesson, content, revision, *count) for (lesson, revision), count in counts.items()]
    database.executemany("INSERT INTO use_counts VALUES (?, ?, ?, ?, ?)", totals)


def _manifest(blob: bytes) -> Manifest:
    return Manifest.parse(zlib.decompress(blob).decode())
