"""Questions of the pages to a run's index about the entries of its bank, and what all questions share."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coevo.flows.history.revision_reference import SHORTEST
from coevo.flows.report.lives import Life, lives
from coevo.memory.similarity import SimilarityIndex
from coevo.records.entry import Entry

LIKE = 0.5
"""Least similarity of entries that are shown as similar."""
PAGE_ROWS = 100
"""Most rows of a page of a list."""
IndexRow = dict[str, Any]
MAX_WORDS = 20
"""Most words of a query that are searched for."""
ACTIVE = "since <= :at AND (until IS NULL OR until > :at)"
READ = "SELECT id FROM use_counts JOIN lessons ON lesson = number WHERE content IN (SELECT training FROM led)"
"""Ids of the entries that training episodes which led to the revision have read."""


@dataclass(frozen=True, slots=True)
class BankList:
    """Part of the entries of a bank.

    Attributes:
        total: number of all that match.
        rows: those of one page.
        scopes: each scope of the bank, with the number that match.
        held: number of all that match and were read in a held-out episode.
    """

    total: int
    rows: Sequence[IndexRow]
    scopes: Sequence[tuple[str, int]]
    held: int


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

    def panels_with_own_bank(self) -> list[str]:
        """Panels in whose prompts stand lessons that were never in the bank: they have a bank of their own.

        Those of the last evaluation that led to this revision.
        """
        statement = (
            "SELECT DISTINCT panel FROM lessons CROSS JOIN uses ON uses.lesson = lessons.number AND uses.content = "
            "(SELECT held_out FROM led WHERE held_out IS NOT NULL ORDER BY revision DESC LIMIT 1) "
            "CROSS JOIN episodes ON episodes.content = uses.content AND episodes.number = uses.episode "
            "WHERE lessons.id NOT IN (SELECT id FROM bank) ORDER BY 1"
        )
        return [row["panel"] for row in self._rows(statement)]


class EntryQueries(IndexQueries):
    """The bank of a revision: its entries, their uses and their changes."""

    def page(self, query: str = "", scope: str | None = None, page: int = 0, unread: bool = False) -> BankList:
        """A page of the bank by scope and id, with their uses.

        Each has every word of ``query`` in its texts. ``unread`` leaves those that no training episode has read.
        ``held_out`` of a row counts held-out episodes with it in a prompt; ``held`` is known with ``unread`` alone.
        """
        words = {f"word{number}": word for number, word in enumerate(query.casefold().split()[:MAX_WORDS])}
        values: IndexRow = {"at": self.revision, "scope": scope, **words}
        matches = " AND ".join(["1", *(f"instr(folded, :{name}) > 0" for name in words)])
        matches += f" AND id NOT IN ({READ})" if unread else ""
        scopes = self._rows(
            f"SELECT scope, SUM({matches}) AS n FROM bank WHERE {ACTIVE} GROUP BY scope ORDER BY 1", values
        )
        where = f"{ACTIVE} AND {matches} AND (:scope IS NULL OR scope = :scope)"
        ids = [row["id"] for row in self._rows(f"SELECT id FROM bank WHERE {where} ORDER BY scope, id", values)]
        chosen = ids[page * PAGE_ROWS : (page + 1) * PAGE_ROWS]
        listed = f"SELECT * FROM bank WHERE {ACTIVE} AND id IN (SELECT value FROM json_each(:ids)) ORDER BY scope, id"
        rows = self._rows(listed, {"at": self.revision, "ids": json.dumps(chosen)})
        held = self.held_out_uses(ids if unread else chosen)
        found = [self._entry(row) | {"held_out": held.get(row["id"], 0)} for row in rows]
        return BankList(len(ids), found, [(row["scope"], row["n"]) for row in scopes], len(held))

    def held_out_uses(self, entries: Sequence[str]) -> dict[str, int]:
        """Held-out episodes that led to this revision with an entry in a prompt, by its id, where there are any.

        Episodes of panels with a bank of their own are left out: an entry with the same text has the same id there.
        """
        statement = (
            "SELECT lessons.id AS id, COUNT(*) AS n FROM lessons CROSS JOIN uses ON uses.lesson = lessons.number "
            "CROSS JOIN episodes ON episodes.content = uses.content AND episodes.number = uses.episode "
            "WHERE lessons.id IN (SELECT value FROM json_each(?)) AND uses.content IN (SELECT held_out FROM led) "
            "AND panel NOT IN (SELECT value FROM json_each(?)) AND lost = 0 GROUP BY 1"
        )
        rows = self._rows(statement, (json.dumps([*entries]), json.dumps(self.panels_with_own_bank())))
        return {row["id"]: row["n"] for row in rows}

    def named(self, text: str) -> list[str]:
        """Ids of the entries up to this revision that a text names: an id, the beginning of one alone, or words."""
        known = "SELECT id FROM bank WHERE since <= :at UNION SELECT id FROM lessons"
        rows = self._rows(f"SELECT id FROM ({known}) ORDER BY id = :text DESC, id", {"at": self.revision, "text": text})
        ids = [row["id"] for row in rows if row["id"].startswith(text)]
        if ids and (ids[0] == text or (len(ids) == 1 and len(text) >= SHORTEST)):
            return ids[:1]
        words = {f"word{number}": word for number, word in enumerate(text.casefold().split()[:MAX_WORDS])}
        where = " AND ".join(["since <= :at", *(f"instr(folded, :{name}) > 0" for name in words)])
        rows = self._rows(f"SELECT DISTINCT id FROM bank WHERE {where} ORDER BY id", {"at": self.revision, **words})
        return [row["id"] for row in rows] if words else []

    def active(self) -> list[IndexRow]:
        """Contents of all entries of this revision, by id."""
        rows = self._rows(f"SELECT content FROM bank WHERE {ACTIVE} ORDER BY id", {"at": self.revision})
        return [json.loads(row["content"]) for row in rows]

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
