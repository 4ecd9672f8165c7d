"""A small SQL database that an episode keeps as bytes: one image of SQLite per state, which no statement changes.

Statements are MySQL's. sqlglot writes them for SQLite, and only SELECT, INSERT, UPDATE and DELETE run: an authorizer
refuses everything else, files, pragmas and extensions among it. Limits count instructions and characters, so that they
cut the same statement on every machine.
"""

import logging
import math
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from time import thread_time
from typing import Any, NamedTuple

from coevo.envs.failures import one_line
from coevo.envs.lifelong.sqlglot_bounds import nesting_fault, sqlite_text
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import extras_named

with extras_named():
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

Value = int | float | str | None
SqlRow = tuple[Value, ...]

MAX_SQL_CHARS = 4_000
"""Most characters of an action's statements."""
MAX_STATEMENTS = 8
MAX_ROWS, MAX_CHARS = 50, 2_000
"""Most rows of a result, and most characters of what the agent reads of it."""
MAX_INSTRUCTIONS, EVERY = 500_000, 1_000
"""Most instructions of SQLite's machine in a statement, and how often they are counted."""
MAX_CPU_SECONDS = 20.0
"""Most processor time of a statement, a few times what the other limits leave it: the clock decides nothing."""
MAX_PAGES = 256
"""Most pages of 4 KiB of a database."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_SQL_CHARS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 30,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}
_ACTS = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_RECURSIVE,
}  # fmt: skip
_FUNCTIONS = frozenset((
    "abs", "avg", "ceil", "ceiling", "coalesce", "concat", "concat_ws", "count", "date", "dense_rank",
    "first_value", "floor", "group_concat", "ifnull", "iif", "instr", "julianday", "lag", "last_value", "lead",
    "left", "length", "like", "lower", "ltrim", "max", "min", "mod", "month", "nullif", "pow", "power", "rank",
    "replace", "right", "round", "row_number", "rtrim", "sign", "sqrt", "stddev", "stddev_pop", "stddev_samp",
    "strftime", "substr", "substring", "sum", "total", "trim", "upper", "year", "day",
))  # fmt: skip
"""Functions that a statement may use: none of them reads a clock, a file or random numbers."""
_MARKS = re.compile(r"\x1b\[\d*m")
"""Marks of a terminal, which sqlglot puts into its messages."""
_RUN = (exp.Query, exp.Insert, exp.Update, exp.Delete)
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # feedback names what is not supported


class SqlTable(NamedTuple):
    """A table: its name, the name and MySQL type of each column, and its rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[SqlRow, ...]


class SqlOutcome(NamedTuple):
    """Result of statements.

    Attributes:
        image: the database after them.
        text: result of the last one as the agent reads it, or why it failed.
        failed: True if it failed; those before it took effect.
        rows: rows of the last one.
    """

    image: bytes
    text: str
    failed: bool
    rows: tuple[SqlRow, ...] = ()


class _StatementError(CoevoError):
    """A statement that is not run."""


def image_of(table: SqlTable) -> bytes:
    """A database with this table.

    Raises:
        CoevoError: SQLite does not take the table.
    """
    columns = ", ".join(f"{_quoted(name)} {_affinity(kind)}" for name, kind in table.columns)
    marks = ", ".join("?" * len(table.columns))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute(f"CREATE TABLE {_quoted(table.name)} ({columns})")
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {_quoted(table.name)} VALUES ({marks})", table.rows)
        connection.execute("COMMIT")
        return connection.serialize()
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise CoevoError(f"table {table.name!r}: {one_line(str(error))}") from None
    finally:
        connection.close()


def executed(image: bytes, sql: str) -> SqlOutcome:
    """Run statements on a database; the image that is given stays as it is. Nothing raises out of it."""
    try:
        statements = _translated(sql)
    except _StatementError as refused:
        return SqlOutcome(image, str(refused), failed=True)
    connection, rows, text, failed = _opened(image), tuple[SqlRow, ...](), "", False
    try:
        for statement in statements:
            rows, text, failed = _ran(connection, statement)
            if failed:
                break
        return SqlOutcome(connection.serialize() if _writes(statements) else image, text, failed, rows)
    finally:
        connection.close()


def table_rows(image: bytes, name: str) -> tuple[SqlRow, ...]:
    """All rows of a table."""
    connection = _loaded(image)
    try:
        return tuple(connection.execute(f"SELECT * FROM {_quoted(name)}").fetchall())
    finally:
        connection.close()


def table_hash(rows: Sequence[SqlRow]) -> str:
    """Hash of a table, whatever the order of its rows, in the form of LifelongAgentBench: 5 hex digits of each row."""
    parts = sorted(
        md5(",".join(str(value) for value in row if value is not None).encode(), usedforsecurity=False).hexdigest()[:5]
        for row in rows
    )
    return md5(",".join(parts).encode(), usedforsecurity=False).hexdigest()


def _translated(sql: str) -> list[exp.Expr | str]:
    """Statements for SQLite; a listing stays an expression.

    Raises:
        _StatementError: they are too long, no SQL, or no statements that run.
    """
    if len(sql) > MAX_SQL_CHARS:
        raise _StatementError(f"error: {len(sql)} characters of SQL, and at most {MAX_SQL_CHARS} are run")
    try:
        sql.encode()
        fault = nesting_fault(sql)
        parsed = [] if fault else [each for each in parse(sql, read="mysql") if each is not None]
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise _StatementError(f"error: no SQL: {one_line(_MARKS.sub('', str(error)), 120)}") from None
    if fault:
        raise _StatementError(f"error: {fault}: write the statement flatter")
    if not 1 <= len(parsed) <= MAX_STATEMENTS:
        raise _StatementError(f"error: {len(parsed)} statements, and 1 to {MAX_STATEMENTS} are run")
    return [_for_sqlite(each) for each in parsed]


def _for_sqlite(statement: exp.Expr) -> exp.Expr | str:
    if isinstance(statement, exp.Describe | exp.Show):
        return statement
    if not isinstance(statement, _RUN):
        name = one_line(str(statement.this) if isinstance(statement, exp.Command) else statement.key, 20).upper()
        raise _StatementError(f"error: {name} is not supported: use SELECT, INSERT, UPDATE or DELETE")
    if isinstance(statement, exp.Update | exp.Delete) and statement.find(exp.Join):
        raise _StatementError("error: UPDATE and DELETE with JOIN are not supported: use a subquery")
    try:
        return sqlite_text(statement)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise _StatementError(f"error: not supported: {one_line(str(error), 120)}") from None


def _writes(statements: Sequence[exp.Expr | str]) -> bool:
    return any(isinstance(each, str) and not each.lstrip("( ").upper().startswith("SELECT") for each in statements)


def _ran(connection: sqlite3.Connection, statement: exp.Expr | str) -> tuple[tuple[SqlRow, ...], str, bool]:
    """Rows, text and failure of one statement."""
    if not isinstance(statement, str):
        rows = _listed(connection, statement)
        return rows, shown(rows), False
    connection.set_progress_handler(_Meter().over, EVERY)
    try:
        cursor = connection.execute(statement)
        rows = tuple(cursor.fetchmany(MAX_ROWS + 1))
        cursor.close()
        return rows, shown(rows), False
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        reason = "too much work for one statement" if "interrupted" in str(error) else one_line(str(error), 200)
        return (), f"error: {reason}", True


def shown(rows: Sequence[SqlRow]) -> str:
    """Rows as Python writes a list of tuples, cut where they are too many."""
    text = repr(list(rows[:MAX_ROWS]))
    cut = text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + " ..."
    return cut if len(rows) <= MAX_ROWS else f"{cut} and more rows"


def _listed(connection: sqlite3.Connection, statement: exp.Expr) -> tuple[SqlRow, ...]:
    """Names of the tables, or names and types of the columns of each."""
    connection.set_authorizer(None)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if isinstance(statement, exp.Describe) or "COLUMNS" in str(statement.args.get("this", "")).upper():
        rows = [tuple(row) for name in names for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
        columns = tuple((str(row[1]), str(row[2]).lower()) for row in rows)
        connection.set_authorizer(_allowed)
        return columns
    connection.set_authorizer(_allowed)
    return tuple((name,) for name in names)


def _loaded(image: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(image)
    connection.text_factory = _decoded
    return connection


def _decoded(text: bytes) -> str:
    """A text of the database, which may have been made of any bytes."""
    return text.decode(errors="replace")


def _opened(image: bytes) -> sqlite3.Connection:
    """A connection that can only read and change the rows of the image."""
    connection = _loaded(image)
    connection.execute(f"PRAGMA max_page_count = {MAX_PAGES}")
    connection.execute("PRAGMA temp_store = MEMORY")
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    for name, (count, function) in _OWN.items():
        connection.create_function(name, count, function, deterministic=True)
    for name, sample in (("stddev", 0), ("stddev_pop", 0), ("stddev_samp", 1)):
        connection.create_aggregate(name, 1, _SPREADS[sample])
    connection.set_authorizer(_allowed)
    return connection


def _allowed(act: int, first: str | None, second: str | None, _: str | None, __: str | None) -> int:
    """SQLite's question whether a statement may do something."""
    if act == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if (second or "").lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
    of_sqlite = (first or "").lower().startswith("sqlite_")
    return sqlite3.SQLITE_OK if act in _ACTS and not of_sqlite else sqlite3.SQLITE_DENY


class _Meter:
    """Counts the work of a statement."""

    def __init__(self) -> None:
        self._left, self._since = MAX_INSTRUCTIONS // EVERY, thread_time()

    def over(self) -> bool:
        """True once it has had its share."""
        self._left -= 1
        return self._left < 0 or thread_time() - self._since > MAX_CPU_SECONDS


class _Spread:
    """Standard deviation of a group of numbers, as an aggregate of SQLite."""

    fewer = 0

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def step(self, value: Value, /) -> None:
        """Add a number; whatever is none is left out."""
        if isinstance(value, int | float):
            self._count += 1
            apart = value - self._mean
            self._mean += apart / self._count
            self._squares += apart * (value - self._mean)

    def finalize(self) -> float | None:
        """The deviation; None without numbers."""
        least = self._count - self.fewer
        return math.sqrt(self._squares / least) if least > 0 else None


class _SampleSpread(_Spread):
    fewer = 1


_SPREADS: tuple[Callable[[], Any], ...] = (_Spread, _SampleSpread)


def _day_of(value: Value) -> str | None:
    """The day of a date or time, which MySQL writes YYYY-MM-DD."""
    text = str(value)[:10]
    parts = text.split("-")
    return text if len(text) == 10 and len(parts) == 3 and all(part.isdigit() for part in parts) else None


def _part(start: int, end: int) -> Callable[[Value], int | None]:
    def part(value: Value) -> int | None:
        day = _day_of(value)
        return None if day is None else int(day[start:end])

    return part


def _formatted(form: Value, value: Value) -> str | None:
    """A day in strftime's letters for year, month and day."""
    day = _day_of(value)
    if day is None:
        return None
    return str(form).replace("%Y", day[:4]).replace("%m", day[5:7]).replace("%d", day[8:])


def _julian(value: Value) -> float | None:
    """Days since a fixed day, so that differences of days are right."""
    day = _day_of(value)
    if day is None:
        return None
    year, month = int(day[:4]), int(day[5:7])
    year, month = (year - 1, month + 12) if month <= 2 else (year, month)
    century = year // 100
    days = int(365.25 * (year + 4716)) + int(30.6001 * (month + 1)) + int(day[8:])
    return days + 2 - century + century // 4 - 1524.5


def _number(function: Callable[[float], float]) -> Callable[[Value], float | None]:
    def guarded(value: Value) -> float | None:
        return function(value) if isinstance(value, int | float) else None

    return guarded


def _power(base: Value, exponent: Value) -> float | None:
    if not (isinstance(base, int | float) and isinstance(exponent, int | float)):
        return None
    return math.pow(base, exponent)


def _left(text: Value, count: Value) -> str | None:
    return str(text)[: max(0, count)] if text is not None and isinstance(count, int) else None


def _right(text: Value, count: Value) -> str | None:
    return str(text)[-count:] if text is not None and isinstance(count, int) and count > 0 else None


_OWN: Mapping[str, tuple[int, Callable[..., Value]]] = {
    "date": (-1, lambda *parts: _day_of(parts[0]) if len(parts) == 1 else None),
    "strftime": (-1, lambda *parts: _formatted(*parts) if len(parts) == 2 else None),
    "julianday": (-1, lambda *parts: _julian(parts[0]) if len(parts) == 1 else None),
    "year": (1, _part(0, 4)), "month": (1, _part(5, 7)), "day": (1, _part(8, 10)),
    "concat": (-1, lambda *parts: None if None in parts else "".join(map(str, parts))),
    "concat_ws": (-1, lambda *parts: str(parts[0]).join(str(each) for each in parts[1:] if each is not None)),
    "left": (2, _left), "right": (2, _right), "pow": (2, _power), "power": (2, _power),
    "ceil": (1, _number(math.ceil)), "ceiling": (1, _number(math.ceil)), "floor": (1, _number(math.floor)),
    "sqrt": (1, _number(lambda value: math.sqrt(value) if value >= 0 else math.nan)),
    "mod": (2, lambda one, other: one % other if other else None),
}  # fmt: skip
"""Functions of MySQL that SQLite lacks, and such as would otherwise know the clock."""


def _affinity(kind: str) -> str:
    """Column of SQLite for a type of MySQL; texts are compared without regard to case, as MySQL does."""
    word = kind.upper().partition("(")[0].split()[0] if kind.strip() else ""
    if "INT" in word or word in ("BOOL", "BOOLEAN", "YEAR", "BIT"):
        return "INTEGER PRIMARY KEY" if "PRIMARY KEY" in kind.upper() else "INTEGER"
    if word in ("DECIMAL", "NUMERIC", "FLOAT", "DOUBLE", "REAL"):
        return "REAL"
    return "TEXT COLLATE NOCASE"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
