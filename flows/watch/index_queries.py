"""Questions of the pages to a run's index. A reader sees the index as it was when it was opened."""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from coevo.flows.history.expenses import PARTS, Expense
from coevo.flows.history.stored_episodes import TRAINING
from coevo.flows.watch.entry_queries import EntryQueries, IndexQueries, IndexRow
from coevo.lineage.revision.manifest import Manifest

MAX_POINTS = 300
"""Most points of a curve; revisions of a longer one are pooled."""
LED = """
CREATE TEMP TABLE led AS WITH RECURSIVE led(revision) AS (
    SELECT ? UNION ALL
    SELECT predecessor FROM revisions JOIN led USING (revision) WHERE predecessor IS NOT NULL
) SELECT revision, training, held_out FROM led JOIN revisions USING (revision)
"""
HELD_OUT = "held-out"
"""Episodes of all panels, in an address."""
EPISODE_CONDITIONS = {
    "panel": f"(panel = :panel OR :panel = '{HELD_OUT}')",
    "kind": "kind = :kind", "reason": "reason = :reason", "use": "lessons = :use",
    "lesson": "number IN (SELECT episode FROM uses JOIN lessons ON lesson = lessons.number "
    "WHERE lessons.id IN (SELECT value FROM json_each(:lesson)) AND uses.content = :content)",
}  # fmt: skip


class EpisodeQueries(IndexQueries):
    """The episodes that a revision and those before it keep."""

    def chosen(self, panel: str, wanted: IndexRow) -> list[IndexRow]:
        """Episodes of this revision by task and replica.

        Args:
            panel: name of a panel, ``TRAINING``, or ``HELD_OUT`` for all panels.
            wanted: values of ``kind``, ``reason``, ``use``, ``lesson`` (a list of ids as JSON) and ``outcome``
                (``failed``, ``solved``).
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

    def success(self) -> list[IndexRow]:
        """Episodes of this revision that count, and those that solved their task, by set and kind of task."""
        statement = (
            "SELECT panel, kind, COUNT(*) AS episodes, SUM(success) AS solved FROM episodes "
            "WHERE content IN (?, ?) AND lost = 0 GROUP BY panel, kind ORDER BY panel, kind"
        )
        return self._rows(statement, (self._content(True), self._content(False)))

    def readers(self, entry: str) -> list[IndexRow]:
        """Episodes with an entry in a prompt, and those that solved their task, by set.

        They are of the last revision with training episodes that led to this one, and of the last with held-out ones.
        """
        own = self.panels_with_own_bank()
        statement = (
            "SELECT panel, COUNT(*) AS shown, SUM(success) AS solved FROM lessons CROSS JOIN uses ON uses.lesson = "
            "lessons.number CROSS JOIN episodes ON episodes.content = uses.content AND episodes.number = uses.episode "
            "WHERE lessons.id = ? AND uses.content = ? GROUP BY 1 ORDER BY 1"
        )
        found = list[IndexRow]()
        for column in ("training", "held_out"):
            led = f"SELECT revision, {column} AS content FROM led WHERE {column} IS NOT NULL ORDER BY 1 DESC LIMIT 1"
            for last in self._rows(led):
                rows = self._rows(statement, (entry, last["content"]))
                found += [row | {"revision": last["revision"], "own_bank": row["panel"] in own} for row in rows]
        return found

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

    def best(self, besides: int = -1) -> IndexRow | None:
        """Revision of the trail with the highest held-out success, the earliest of equal ones, besides one."""
        led = "SELECT revision, held FROM revisions JOIN led USING (revision) WHERE held IS NOT NULL AND revision <> ?"
        return next(iter(self._rows(f"{led} ORDER BY held DESC, revision LIMIT 1", (besides,))), None)

    def rejecting(self) -> int | None:
        """The last revision before this one, of those that led to it, that rejected candidates."""
        led = "SELECT MAX(revision) FROM revisions JOIN led USING (revision) WHERE revision < ? AND what LIKE ?"
        found = self._value(led, (self.revision, "%rejected%"))
        return None if found is None else int(found)

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
