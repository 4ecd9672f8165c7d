"""Bounds of the work with which sqlglot reads a statement of MySQL and writes it for SQLite.

sqlglot reads a bracket behind the name of a type first as the type's arguments and then as a call, and what follows a
JOIN without ON twice: its time doubles with each of them, and a short text would be read for years. It also writes an
argument of some functions twice.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from coevo.utilities.extras import extras_named

with extras_named():
    from sqlglot import exp
    from sqlglot.dialects.mysql import MySQL
    from sqlglot.dialects.sqlite import SQLite
    from sqlglot.errors import ErrorLevel
    from sqlglot.generators.sqlite import SQLiteGenerator
    from sqlglot.tokenizer_core import Token, TokenType

MAX_DEPTH, MAX_TYPE_DEPTH = 10, 3
"""Most brackets in one another, and most of them behind names of types, such as ``DATE(``."""
MAX_JOINS, MAX_WRITTEN = 10, 10_000
"""Most JOINs of all statements together, and most parts of one that are written, repeated ones included."""
_CLOSED_BY = {
    TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE, TokenType.LT: None,
}  # fmt: skip
"""Bracket that closes another. ``<`` is one only behind the name of a type of types, which no statement may have."""
_JOINS = (TokenType.JOIN, TokenType.STRAIGHT_JOIN)
_TYPES = frozenset(MySQL.Parser.TYPE_TOKENS)
_REFUSED = (
    frozenset((*MySQL.Parser.NESTED_TYPE_TOKENS, *MySQL.Parser.STRUCT_TYPE_TOKENS)) - {TokenType.UNION}
)  # fmt: skip
"""Types of types, which MySQL lacks; UNION joins two queries in brackets."""


def nesting_fault(sql: str) -> str:
    """Fault of a text whose parse could take long; empty without one.

    Args:
        sql: statements of MySQL.

    Raises:
        sqlglot.errors.TokenError: they are no tokens of MySQL.
    """
    tokens = MySQL().tokenize(sql)
    # sqlglot reads a name in backquotes as a type, too, with all that is within.
    quoted = (nesting_fault(token.text) for token in tokens if _is_quoted(token))
    return next(filter(None, quoted), "") or _fault(tokens)


def sqlite_text(statement: exp.Expr) -> str:
    """A statement as SQLite reads it.

    Raises:
        ValueError: it would be far longer than it is.
    """
    return str(_BoundedGenerator(dialect=SQLite, unsupported_level=ErrorLevel.IGNORE).generate(statement))


class _BoundedGenerator(SQLiteGenerator):
    """Writes for SQLite, and counts the parts."""

    _written = 0

    def sql(self, *given: Any, **named: Any) -> str:
        """Write a part."""
        self._written += 1
        if self._written > MAX_WRITTEN:
            raise ValueError("the statement is too long for SQLite")
        return str(super().sql(*given, **named))


def _fault(tokens: Sequence[Token]) -> str:
    kinds = [_kind(token) for token in tokens]
    if sum(kind in _JOINS for kind in kinds) > MAX_JOINS:
        return f"more than {MAX_JOINS} joins"
    opened = list[tuple[TokenType | None, bool]]()
    for before, kind in pairwise((None, *kinds)):
        if kind in _CLOSED_BY and before in _REFUSED:
            return f"{before.name} has no arguments in MySQL"
        if kind in _CLOSED_BY and kind is not TokenType.LT:
            opened.append((_CLOSED_BY[kind], before in _TYPES))
        elif opened and kind is opened[-1][0]:
            opened.pop()
        if len(opened) > MAX_DEPTH:
            return f"more than {MAX_DEPTH} brackets in one another"
        if sum(of_type for _, of_type in opened) > MAX_TYPE_DEPTH:
            return f"more than {MAX_TYPE_DEPTH} of DATE(, CHAR( and the like in one another"
    return ""


def _is_quoted(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER


def _kind(token: Token) -> TokenType:
    """Kind of a token; that of a quoted name is the one of its first word."""
    inner = MySQL().tokenize(token.text) if _is_quoted(token) else []
    return inner[0].token_type if inner else token.token_type
