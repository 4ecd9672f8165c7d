"""Questions of the pages to a run's index. A reader sees the index as it was when it was opened."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from coevo.flows.history.expenses import PARTS, Expense
from coevo.flows.history.stored_episodes import TRAINING
from coevo.flows.report.lives import Life, lives
from coevo.lineage.revision.manifest import Manifest
from coevo.memory.similarity import SimilarityIndex
from coevo.records.entry import Entry

MAX_POINTS = 300
"""Most points of a curve; revisions of a longer one are pooled."""
LIKE = 0.5
"""Least similarity of entries that are shown as similar."""
PAGE_ROWS = 100
"""Most rows of a page of a list."""
IndexRow = dict[str, Any]
LED = """
CREATE TEMP TABLE led AS WITH RECURSIVE led(revision) AS (
    SELECT ? UNION ALL
    SELECT predecessor FROM revisions JOIN led USING (revision) WHERE predecessor IS NOT NULL
) SELECT revision, training, held_out FROM led JOIN revisions USING (revision)
"""
MAX_WORDS = 20
"""Most words of a query that are searched for."""
ACTIVE = "since <= :at AND (until IS NULL OR until > :at)"
READ = "SELECT id FROM use_counts JOIN lessons ON lesson = number WHERE content IN (SELECT training FROM led)"
"""Ids of the entries that training episodes which led to the revision have read."""
EPISODE_CONDITIONS = {
    "panel": "panel = :panel", "kind": "kind = :kind", "reason": "reason = :reason", "use": "lessons = :use",
    "lesson": "number IN (SELECT episode FROM uses JOIN lessons ON lesson = lessons.number "
    "WHERE lessons.id = :lesson AND uses.content = :content)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BankList:
    """Part of the entries of a bank: so many of all that match, those of one page, and the number by scope."""

    total: int
    rows: Sequence[IndexRow]
    scopes: Sequence[tuple[str, int]]


class IndexQueries:
    """Questions to an index that knows which revisions led to one.

    Attributes:
        revision: the revision.
    """

    def __init__(self, database: sqlite3.Connection, revision: int) -> None:
        self._database, self.revision = database, revision

    def _rows(self, statement: str, values: IndexRow | Sequence[Any] = ()) -> list[IndexRow]:
        return [dict(row) for row in self._database.execute(statement, values)]

    def _value(self, statement: str, values: IndexRow | Sequence[Any] = ()) -> Any:
        row = self._database.execute(statement, values).fetchone()
        return None if row is None else row[0]


class EntryQueries(IndexQueries):
    """The bank of a revision: its entries, their uses and their changes."""

    def page(self, query: str = "", scope: str | None = None, page: int = 0, unread: bool = False) -> BankList:
        """A page of the bank by scope and id, with their uses.

        Each has every word of ``query`` in its texts. ``unread`` leaves those that no training episode has read.
        """
        words = {f"word{number}": word for number, word in enumerate(query.casefold().split()[:MAX_WORDS])}
        values: IndexRow = {"at": self.revision, "scope": scope, **words}
        where = " AND ".join([ACTIVE, *(f"instr(folded, :{name}) > 0" for name in words)])
        if unread:
            where += f" AND id NOT IN ({READ})"
        scopes = self._rows(f"SELECT scope, COUNT(*) AS n FROM bank WHERE {where} GROUP BY scope ORDER BY 1", values)
        where += " AND (:scope IS NULL OR scope = :scope)"
        total = int(self._value(f"SELECT COUNT(*) FROM bank WHERE {where}", values))
        values |= {"rows": PAGE_ROWS, "skip": page * PAGE_ROWS}
        rows = self._rows(f"SELECT * FROM bank WHERE {where} ORDER BY scope, id LIMIT :rows OFFSET :skip", values)
        return BankList(total, [self._entry(row) for row in rows], [(row["scope"], row["n"]) for row in scopes])

    def _entry(self, row: IndexRow) -> IndexRow:
        shown, solved = self._totals(row["id"])
        found: IndexRow = json.loads(row["content"])
        return found | {"since": row["since"], "shown": shown, "solved": solved}

    def _totals(self, entry: str) -> tuple[int, int]:
        statement = (
            "SELECT COALESCE(SUM(shown), 0) AS shown, COALESCE(SUM(solved), 0) AS solved FROM use_counts "
            "WHERE lesson = (SELECT number FROM lessons WHERE id = ?) AND content IN (SELECT training FROM led)"
        )
        (row,) = self._rows(statement, (entry,))
        return row["shown"], row["solved"]

    def changes(self, since: int) -> dict[str, list[IndexRow]]:
        """Entries added, edited (with what they ``was``) and retired against another revision, each by id."""
        old, new = dict[str, IndexRow](), dict[str, IndexRow]()
        rows = self._rows(
            "SELECT id, content, stands FROM (SELECT id, content, since <= :new AND (until IS NULL OR until > :new) "
            "AS stands, since <= :old AND (until IS NULL OR until > :old) AS stood FROM bank) WHERE stands <> stood",
            {"old": since, "new": self.revision},
        )
        for row in rows:
            (new if row["stands"] else old)[row["id"]] = json.loads(row["content"])
        return {
            "added": [new[name] for name in sorted(new.keys() - old.keys())],
            "edited": [
                new[name] | {"was": old[name]["strategy"]}
                for name in sorted(new.keys() & old.keys())
                if new[name] != old[name]
            ],
            "retired": [old[name] for name in sorted(old.keys() - new.keys())],
        }

    def spans(self, entry: str) -> list[IndexRow]:
        """Contents that an entry had over the whole history, oldest first, each since one revision until another."""
        rows = self._rows("SELECT since, until, content FROM bank WHERE id = ? ORDER BY since", (entry,))
        return [{"since": row["since"], "until": row["until"], **json.loads(row["content"])} for row in rows]

    def texts(self, entries: Sequence[str], training: bool) -> dict[str, IndexRow]:
        """Entries by id as prompts had them: training comes before the bank of its revision changes, panels after."""
        found = {}
        for entry in entries:
            spans = [span for span in self.spans(entry) if span["since"] <= self.revision - training]
            if spans:
                found[entry] = spans[-1]
        return found

    def similar(self, entry: IndexRow, count: int) -> list[tuple[float, IndexRow]]:
        """Other entries of this revision and scope whose texts are most alike, with their similarity from 0 to 1."""
        rows = self._rows(
            f"SELECT content FROM bank WHERE {ACTIVE} AND scope = :scope AND id <> :id",
            {"at": self.revision, "scope": entry["scope"], "id": entry["id"]},
        )
        others, texts = [json.loads(row["content"]) for row in rows], SimilarityIndex()
        for other in others:
            texts.add(other["strategy"])
        numbers, likeness = texts.above(entry["strategy"], LIKE)
        found = sorted(zip(likeness.tolist(), numbers.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))
        return [(score, others[number]) for score, number in found[:count]]

    def uses(self, entry: str) -> list[IndexRow]:
        """Training episodes that led to this revision with the entry in a prompt, and their successes, by revision."""
        statement = (
            "SELECT revision, SUM(shown) AS shown, SUM(solved) AS solved FROM use_counts "
            "WHERE lesson = (SELECT number FROM lessons WHERE id = ?) AND content IN (SELECT training FROM led) "
            "GROUP BY revision ORDER BY revision"
        )
        return self._rows(statement, (entry,))

    def life(self, entry: Entry) -> Life:
        """Uses of an entry, and its gain against the other episodes of the same revisions and kinds."""
        shown = {(row["content"], row["episode"]) for row in self._uses_of(entry.id)}
        strata = "SELECT DISTINCT content, revision, kind FROM episodes WHERE lost = 0 AND (content, number) IN "
        strata += "(SELECT content, episode FROM uses WHERE lesson = (SELECT number FROM lessons WHERE id = :id)) "
        strata += "AND content IN (SELECT training FROM led)"
        rows = self._rows(
            f"WITH strata AS MATERIALIZED ({strata}) SELECT content, number, revision, kind, task AS task_id, success "
            "FROM episodes JOIN strata USING (content, revision, kind) WHERE lost = 0",
            {"id": entry.id},
        )
        turns = [[{"retrieved": [entry.id] if (row["content"], row["number"]) in shown else []}] for row in rows]
        columns = {name: [row[name] for row in rows] for name in ("revision", "kind", "task_id")}
        kind = pa.list_(pa.struct([("retrieved", pa.list_(pa.string()))]))
        success = pa.array([bool(row["success"]) for row in rows], pa.bool_())
        table = pa.table({**columns, "success": success, "turns": pa.array(turns, kind)})
        return lives([entry], [table])[entry.id]

    def _uses_of(self, entry: str) -> list[IndexRow]:
        statement = "SELECT content, episode FROM uses WHERE lesson = (SELECT number FROM lessons WHERE id = ?)"
        return self._rows(statement, (entry,))


class EpisodeQueries(IndexQueries):
    """The episodes that a revision and those before it keep."""

    def chosen(self, panel: str, wanted: IndexRow) -> list[IndexRow]:
        """Episodes of this revision by task and replica.

        Args:
            panel: name of a panel, or ``TRAINING``.
            wanted: values of ``kind``, ``reason``, ``use``, ``lesson`` and ``outcome`` (``failed``, ``solved``).
        """
        content = self._content(panel == TRAINING)
        values = {"content": content, "panel": panel, **{name: value for name, value in wanted.items() if value}}
        conditions = [text for name, text in EPISODE_CONDITIONS.items() if name in values]
        conditions += {"failed": ["success = 0"], "solved": ["success = 1"]}.get(str(values.get("outcome")), [])
        where = " AND ".join(["content = :content", *conditions])
        return self._rows(f"SELECT * FROM episodes WHERE {where} ORDER BY task, replica, number", values)

    def at(self, training: bool, number: int) -> IndexRow | None:
        """An episode of this revision by its position; None where there is none."""
        statement = "SELECT * FROM episodes WHERE content = ? AND number = ?"
        return next(iter(self._rows(statement, (self._content(training), number))), None)

    def source(self, episode: str) -> IndexRow | None:
        """A training episode by its id, which begins with its revision, with that revision; None where it is gone."""
        head = episode.partition("/")[0]
        if not (head.isascii() and head.isdecimal() and len(head) <= 9):
            return None
        statement = (
            "SELECT episodes.*, revisions.revision AS stored FROM revisions JOIN episodes ON content = training "
            "WHERE revisions.revision = ? AND episodes.id = ?"
        )
        return next(iter(self._rows(statement, (int(head), episode))), None)

    def panels(self) -> list[str]:
        """Sets of episodes that this revision keeps: training, then panels."""
        rows = self._rows(
            "SELECT panel, MIN(number) AS n FROM episodes WHERE content IN (SELECT training FROM led WHERE revision = "
            ":at UNION SELECT held_out FROM led WHERE revision = :at) GROUP BY content, panel ORDER BY content, n",
            {"at": self.revision},
        )
        return sorted((row["panel"] for row in rows), key=lambda panel: panel != TRAINING)

    def revisions(self, training: bool) -> list[int]:
        """Revisions of the trail that keep such episodes, the latest first."""
        column = "training" if training else "held_out"
        rows = self._rows(f"SELECT revision FROM led WHERE {column} IS NOT NULL ORDER BY revision DESC")
        return [row["revision"] for row in rows]

    def _content(self, training: bool) -> int | None:
        """Number of this revision's episodes; None where it keeps none."""
        column = "training" if training else "held_out"
        found = self._value(f"SELECT {column} FROM revisions WHERE revision = ?", (self.revision,))
        return None if found is None else int(found)


class IndexReader(IndexQueries):
    """The index of a run at one revision.

    Attributes:
        revision: the revision.
        last: the last revision of the index.
        entries: questions about the bank.
        episodes: questions about episodes.
    """

    def __init__(self, database: sqlite3.Connection, revision: int | None) -> None:
        self.last = int(database.execute("SELECT COALESCE(MAX(revision), -1) FROM revisions").fetchone()[0])
        super().__init__(database, self.last if revision is None else min(revision, self.last))
        database.execute(LED, (self.revision,))
        self.entries = EntryQueries(database, self.revision)
        self.episodes = EpisodeQueries(database, self.revision)

    @classmethod
    @contextmanager
    def opened(cls, file: Path, revision: int | None = None) -> Iterator[Self]:
        """Open the index read-only within the block; without a number, at its last revision.

        Raises:
            sqlite3.DatabaseError: there is none yet, or it is damaged.
        """
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA temp_store = MEMORY")
            database.execute("BEGIN")
            yield cls(database, revision)

    def manifest(self, revision: int | None = None) -> Manifest:
        """Manifest of this revision, or of another one."""
        number = self.revision if revision is None else revision
        blob = self._value("SELECT manifest FROM revisions WHERE revision = ?", (number,))
        if blob is None:
            raise sqlite3.DatabaseError(f"revision {number} is not in the index")
        return Manifest.parse(zlib.decompress(blob).decode())

    def row(self) -> IndexRow:
        """Figures of this revision."""
        columns = "revision, iteration, predecessor, moment, what, train, train_low, train_high, held, held_low, "
        columns += "held_high, bank, seconds, kept, training, held_out"
        return self._rows(f"SELECT {columns} FROM revisions WHERE revision = ?", (self.revision,))[0]

    def faults(self) -> list[IndexRow]:
        """Parts of revisions that could not be read."""
        return self._rows("SELECT * FROM faults ORDER BY revision, part")

    def lacks_bank(self) -> bool:
        """True if the bank of this revision could not be read: its rows are those of the last one that could."""
        return any((row["revision"], row["part"]) == (self.revision, "bank") for row in self.faults())

    def curve(self) -> list[IndexRow]:
        """Success, bank and series of the revisions that led to the last one, pooled into few points.

        A point has the number of its last revision; means are means of the pooled, and their intervals those of a mean
        of independent values.
        """
        columns = "revision, train, train_low, train_high, held, held_low, held_high, bank"
        rows = self._rows(f"SELECT {columns} FROM revisions WHERE revision IN (SELECT revision FROM led) ORDER BY 1")
        named = dict[int, IndexRow]()
        for row in self._rows("SELECT name, revision, value FROM metrics WHERE revision IN (SELECT revision FROM led)"):
            named.setdefault(row["revision"], {})[row["name"]] = row["value"]
        whole = [row | named.get(row["revision"], {}) for row in rows]
        size = -(-len(whole) // MAX_POINTS)
        return whole if size < 2 else [_pooled(whole[at : at + size]) for at in range(0, len(whole), size)]

    def best(self) -> IndexRow | None:
        """Revision of the trail with the highest held-out success, the earliest of equal ones."""
        led = "SELECT revision, held FROM revisions JOIN led USING (revision) WHERE held IS NOT NULL"
        return next(iter(self._rows(f"{led} ORDER BY held DESC, revision LIMIT 1")), None)

    def expenses(self) -> list[Expense]:
        """Expense by part up to this revision, those that rollbacks left behind included."""
        sums = ", ".join(f"SUM({name}) AS {name}" for name in ("episodes", "questions", "tokens", "seconds", "money"))
        rows = self._rows(f"SELECT part, {sums} FROM expenses WHERE revision <= ? GROUP BY part", (self.revision,))
        found = {row["part"]: row for row in rows}
        made = [Expense(budgets=part.budgets, **found[part.name]) for part in PARTS if part.name in found]
        return [each for each in made if each.is_shown()]


def _pooled(rows: Sequence[IndexRow]) -> IndexRow:
    made: IndexRow = {"revision": rows[-1]["revision"], "first": rows[0]["revision"], "bank": rows[-1]["bank"]}
    held = next((row for row in reversed(rows) if row["held"] is not None), rows[-1])
    made |= {name: held[name] for name in ("held", "held_low", "held_high")}
    for name in sorted({name for row in rows for name in row} - made.keys() - {"train_low", "train_high"}):
        known = [row[name] for row in rows if row.get(name) is not None]
        made[name] = sum(known) / len(known) if known else None
    spread = [(row["train_high"] - row["train_low"]) / 2 for row in rows if row["train_low"] is not None]
    half = sum(each**2 for each in spread) ** 0.5 / len(spread) if spread else None
    bounded = half is not None and made["train"] is not None
    made["train_low"] = max(0.0, made["train"] - half) if bounded else None
    made["train_high"] = min(1.0, made["train"] + half) if bounded else None
    return made
