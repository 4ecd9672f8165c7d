"""The database of an episode: what runs, what does not, and the limits."""

from time import process_time

import pytest

from coevo.envs.lifelong.sql_answers import answers
from coevo.envs.lifelong.sql_database import MAX_ROWS, SqlTable, executed, image_of, table_hash, table_rows
from coevo.envs.lifelong.sqlglot_bounds import nesting_fault

FRUIT = SqlTable(
    "fruit",
    (("id", "INT PRIMARY KEY"), ("name", "VARCHAR(20)"), ("price", "DECIMAL(8,2)"), ("since", "DATE")),
    ((1, "Pear", 2.5, "2024-02-01"), (2, "fig", 4.0, "2024-03-05"), (3, "plum", None, "2025-03-01")),
)
IMAGE = image_of(FRUIT)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT name FROM fruit WHERE name = 'pear'", "[('Pear',)]"),
        ("SELECT `name` FROM fruit ORDER BY name LIMIT 1 OFFSET 1;", "[('Pear',)]"),
        ("select count(*), avg(price) from fruit as f", "[(3, 3.25)]"),
        ("SELECT id FROM fruit WHERE price > (SELECT AVG(price) FROM fruit)", "[(2,)]"),
        ("SELECT YEAR(since), COUNT(*) AS n FROM fruit GROUP BY YEAR(since) HAVING n > 1", "[(2024, 2)]"),
        ("SELECT MONTH(since), DAY(since) FROM fruit WHERE id = 2", "[(3, 5)]"),
        ("SELECT DATEDIFF('2024-03-05', '2024-02-01')", "[(33,)]"),
        ("SELECT CONCAT(name, '-', id), IF(id > 1, 2, 3) FROM fruit WHERE id = 1", "[('Pear-1', 3)]"),
        ("SELECT CEIL(2.1), FLOOR(2.9), POW(2, 3), MOD(7, 4), ROUND(2.345, 1), 7 DIV 2, 7 / 2", None),
        ("SELECT STDDEV(id) FROM fruit", "[(0.816496580927726,)]"),
        ("INSERT INTO fruit (id, name) VALUES (9, 'kiwi'); SELECT name FROM fruit WHERE id = 9", "[('kiwi',)]"),
        ("UPDATE fruit SET price = price + 1 WHERE id = 1; SELECT price FROM fruit WHERE id = 1", "[(3.5,)]"),
        ("DELETE FROM fruit WHERE id IN (SELECT id FROM fruit WHERE price IS NULL)", "[]"),
        ("SHOW TABLES", "[('fruit',)]"),
        ("DESCRIBE fruit", "[('id', 'integer'), ('name', 'text'), ('price', 'real'), ('since', 'text')]"),
    ],
)
def test_statements_of_mysql_run(sql, text):
    outcome = executed(IMAGE, sql)
    assert not outcome.failed, outcome.text
    assert text is None or outcome.text == text
    assert table_rows(IMAGE, "fruit") == FRUIT.rows, "a state changed"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT peel FROM fruit", "no such column: peel"), ("SELECT 1 FROM nowhere", "no such table: nowhere"),
        ("SELEC 1", "error: "), ("", "0 statements"), ("SELECT (((", "error: "), (";".join(["SELECT 1"] * 9), "9 stat"),
        ("CREATE TABLE t (a INT)", "CREATE is not supported: use SELECT"), ("DROP TABLE fruit", "DROP is not"),
        ("ATTACH DATABASE '/tmp/x.db' AS x", "error: no SQL: "), ("PRAGMA user_version", "PRAGMA is not"),
        ("SELECT LOAD_FILE('/etc/passwd')", "error: "), ("SELECT load_extension('x')", "error: "),
        ("SELECT * FROM sqlite_master", "error: "), ("SELECT * FROM pragma_table_info('fruit')", "error: "),
        ("SELECT readfile('/etc/passwd')", "error: "), ("SELECT 1 INTO OUTFILE '/tmp/x'", "error: "),
        ("SELECT RAND()", "error: "), ("SELECT NOW()", "error: "), ("SELECT CURRENT_DATE", "error: "),
        ("SELECT RANDOMBLOB(9)", "error: "), ("BEGIN", "error: "), ("VACUUM INTO '/tmp/x'", "error: "),
        ("UPDATE fruit JOIN b ON fruit.id = b.id SET price = 1", "JOIN are not supported: use a subquery"),
        ("SELECT '" + "x" * 5000 + "'", "characters of SQL, and at most"), ("SELECT 'a\0b'", "error: "),
        ("SELECT '\ud800'", "error: "), ("SELECT " + "(" * 1500 + "1", "error: "),
    ],
)  # fmt: skip
def test_what_does_not_run_is_one_line(sql, says):
    outcome = executed(IMAGE, sql)
    assert outcome.failed
    assert says in outcome.text
    assert outcome.text.isprintable() or "\0" in sql or "\ud800" in sql
    assert outcome.image == IMAGE


def test_work_rows_and_characters_are_bounded():
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) SELECT i FROM n"
    since = process_time()
    endless = executed(IMAGE, counting.format("").replace("SELECT i FROM n", "SELECT COUNT(*) FROM n"))
    assert endless.text == "error: too much work for one statement"
    assert process_time() - since < 5
    many = executed(IMAGE, counting.format(" WHERE i < 400"))
    assert many.text.endswith("and more rows")
    assert len(many.rows) == MAX_ROWS + 1
    long = "REPLACE(REPLACE(REPLACE('aaaaaaaaaa', 'a', 'aaaaaaaaaa'), 'a', 'aaaaaaaaaa'), 'a', 'aaaaaaaaaa')"
    assert "too big" in executed(IMAGE, f"SELECT LENGTH({long})").text
    image = IMAGE
    for _ in range(20):
        doubled = executed(image, "INSERT INTO fruit (name) SELECT name FROM fruit")
        image = doubled.image
    assert doubled.failed
    assert len(image) <= 256 * 4096


def test_each_statement_has_the_same_share_of_instructions():
    counting = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT COUNT(*) FROM n"
    assert executed(IMAGE, counting.format(20_000)).text == "[(20000,)]"
    assert executed(IMAGE, ";".join([counting.format(20_000)] * 8)).text == "[(20000,)]"
    assert executed(IMAGE, counting.format(80_000)).text == "error: too much work for one statement"


def test_a_sort_of_long_texts_stays_small():
    rows = tuple((number, "a" * 900) for number in range(40))
    image = image_of(SqlTable("t", (("id", "INT"), ("s", "TEXT")), rows))
    joined = "FROM t a, t b, t c, t d, t e"
    many = f"SELECT CONCAT(REPLACE('{'a' * 60}', 'a', '{'b' * 15}'), a.id) AS x {joined} ORDER BY x"
    assert executed(image, many).text == "error: too much work for one statement"
    long = many.replace("b" * 15, "b" * 60)
    assert executed(image, long).text == "error: string or blob too big"
    assert "too complex" in executed(image, f"SELECT 1 FROM t WHERE s LIKE '{'%a' * 16}'").text


def test_an_error_keeps_what_ran_before_it():
    outcome = executed(IMAGE, "DELETE FROM fruit WHERE id = 1; SELECT oops FROM fruit")
    assert outcome.failed
    assert table_rows(outcome.image, "fruit") == FRUIT.rows[1:]


def test_texts_of_any_bytes_are_read():
    outcome = executed(IMAGE, "UPDATE fruit SET name = CAST(x'ff00fe' AS CHAR)")
    assert not outcome.failed
    assert {row[1] for row in table_rows(outcome.image, "fruit")} == {"\ufffd\0\ufffd"}
    assert "\\x00" in executed(outcome.image, "SELECT name FROM fruit").text
    assert len(table_hash(table_rows(outcome.image, "fruit"))) == 32


def test_the_hash_of_a_table_ignores_the_order_of_its_rows():
    assert table_hash(FRUIT.rows) == table_hash(FRUIT.rows[::-1]) != table_hash(FRUIT.rows[1:])


@pytest.mark.parametrize(
    ("text", "rows", "right"),
    [
        ("[('pear', 3), ('fig', 7)]", [("pear", 3), ("fig", 7)], True),
        ("[('fig', 7), ('pear', 3)]", [("pear", 3), ("fig", 7)], False),
        ("(pear, 3), (fig, 7.0000000001)", [("pear", 3), ("fig", 7)], True),
        ("42", [(42,)], True), ("'42'", [(42,)], True), ("42.1", [(42,)], False), ("pear", [("pear",)], True),
        ("[(Decimal('2.50'),)]", [(2.5,)], True), ("[('a, b', 1)]", [("a, b", 1)], True),
        ("[(\"it's\",)]", [("it's",)], True), ("[(it's,)]", [("it's",)], True), ("None", [(None,)], True),
        ("[]", [], True), ("", [], True), ("[]", [(1,)], False), ("[(1, 2]", [(1, 2)], False),
        ("[(1, 2)]", [(1,)], False), ("nan", [(1,)], False), ("(" * 2000, [(1,)], False), ("'" * 999, [("a",)], False),
        ("x" * 30_000, [("x" * 30_000,)], False), ("99", [(b"\0",)], False), ("99", [(10**400,)], False),
        ("1" + "0" * 400, [(10**400,)], False), ("1" + "0" * 400, [(1,)], False), ("inf", [(1,)], False),
    ],
)  # fmt: skip
def test_answers_are_compared_row_by_row(text, rows, right):
    assert answers(text, rows, ordered=True) is right


def test_without_an_order_rows_are_compared_as_a_bag():
    rows = [("a", 1), ("b", 2), ("a", 1)]
    assert answers("[('b', 2), ('a', 1), ('a', 1)]", rows, ordered=False)
    assert not answers("[('b', 2), ('b', 2), ('a', 1)]", rows, ordered=False)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {opening * count}1{closing * count}"
        for count in (3, 8, 40)
        for opening, closing in (
            ("OBJECT(", ")"), ("STRUCT(", ""), ("ARRAY<", ">"), ("MAP(", ")"), ("NULLABLE/**/(", ")"), ("LIST(", ""),
            ("`OBJECT`(", ")"), ("BINARY(", ")"), ("BINARY(a, ", ")"), ("BINARY(CHAR(", "))"), ("DATE(", ")"),
            ("YEAR(a, ", ""), ("CASE WHEN ", " THEN 1 END"), ("CAST(", " AS CHAR)"), ("(SELECT ", ")"), ("ABS(", ")"),
            ("INTERVAL ", " DAY"), ("(", ""), ("f(", ""), ("SAFE_DIVIDE(a, ", ")"), ("TO_ARRAY(", ")"), ("NOT ", ""),
        )
    ] + [
        "SELECT CAST(1 AS `" + "OBJECT(" * 40 + ")" * 40 + "`)",
        "SELECT CAST(1 AS `" + "BINARY(" * 20 + ")" * 20 + "`)",
        *(f"SELECT 1 FROM a {word * count}" for word in ("JOIN b ", "LEFT JOIN b ", ", b JOIN c ", "STRAIGHT_JOIN b ")
          for count in (9, 40)),
    ],
)  # fmt: skip
def test_no_short_text_takes_long_to_read(sql):
    since = process_time()
    outcome = executed(IMAGE, sql)
    assert process_time() - since < 2
    assert "\n" not in outcome.text


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT OBJECT(1)", "error: OBJECT has no arguments in MySQL"),
        ("SELECT " + "(" * 11 + "1", "error: more than 10 brackets in one another"),
        ("SELECT DATE(DATE(DATE(DATE(1))))", "error: more than 3 of DATE("),
        ("SELECT 1 FROM a" + " JOIN b" * 11, "error: more than 10 joins"),
    ],
)
def test_a_statement_that_is_nested_too_deep_is_told_why(sql, says):
    assert executed(IMAGE, sql).text.startswith(says)


@pytest.mark.parametrize(
    "sql",
    ["(SELECT id FROM fruit) UNION (SELECT id FROM fruit)", "SELECT ')((((((((((((('", "SELECT id AS `((` FROM fruit"],
)
def test_brackets_in_quotes_and_around_queries_are_no_nesting(sql):
    assert nesting_fault(sql) == ""
