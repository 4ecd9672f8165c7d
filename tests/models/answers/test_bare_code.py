"""Code without a fence: all of it is the action, or none of it; prose behind it is no part."""

import pytest

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

PROSE = ("I hope this works.", "This shows the rows; then I decide.", "Then I will look.", "Done.")

QUERIES = [
    "BEGIN;\nUPDATE t SET a=1;\nCOMMIT;",
    "SELECT a\nFROM t\n\nWHERE b = 1;",
    "SELECT a -- x\n-- y\nFROM t",
    "SELECT a\n-- Result: y\nFROM t",
    "SELECT a\nFROM t\nWHERE b = 1",
    "SELECT\na,\nb\nFROM\nt\nWHERE\nx = 'a -- b;'",
    "INSERT INTO t\n(a, b)\nVALUES\n(1, 2),\n(3, 4);",
    "-- list\nSELECT 1;",
    "CREATE TABLE t (\na int\n);\n\nINSERT INTO t VALUES (1);",
    "WITH x AS (\n  SELECT 1\n)\nSELECT * FROM x;",
    "CREATE TRIGGER x AFTER INSERT ON t\nBEGIN\nUPDATE t SET a = 1;\nEND;",
    "select a from t;\nselect b from u;",
    "insert into t\n(a, b)\nvalues (1, 2);",
    "SELECT a\nFROM t\nSAMPLE 3 ROWS;",
    "SELECT COUNT(*) FROM t; -- all",
]
SCRIPTS = [
    "for f in *; do\necho $f\ndone",
    "for f in *\ndo\ncat a\ndone",
    "if [ -f a ]; then\ncat a\nfi",
    "while read x; do\nif [ $x ]; then\nbreak\nfi\ndone < a",
    "case $x in\na) echo 1;;\nesac",
    "cd src\nls -la\ncat a.txt",
    'python -c "import os\nprint(os.getcwd())"',
    'git commit -m "a\n\nb"',
    "import os\nprint(os.getcwd())",
    "import os\n\n# where\nprint(os.getcwd())",
    "def f():\n    return 1\n\nprint(f())",
    "def f():\n    a = 1\n\n    return a",
    "x = 1\ny = x + 1",
    "try:\n    x()\nexcept E:\n    pass",
    "a = [\n i\n for i in y\n]\nprint(a)",
]


@pytest.mark.parametrize("code", QUERIES + SCRIPTS)
def test_all_lines_of_code_are_the_action(code):
    assert Reader().read(f"Action: {code}").action == code
    assert Reader().read(f"Action:\n{code}\nObservation: ok").action == code


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("code", QUERIES + SCRIPTS)
def test_prose_behind_code_is_no_part_of_it(code, prose):
    assert Reader().read(f"Action: {code}\n{prose}").action == code
    assert Reader().read(f"Action: {code}\n\n{prose}").action == code


@pytest.mark.parametrize(
    "prose", [*PROSE, "take lamp", "(This is a hall)", "(waiting)", "# I hope", "- one; two;", "}", "x"]
)
@pytest.mark.parametrize(
    "action", ["go north", "click(3)", "Search[a]", "if stuck go north", 'say "hello', "drop lamp"]
)
def test_a_line_behind_an_action_in_text_is_no_part_of_it(action, prose):
    answer = Reader().read(f"Action: {action}\n{prose}")
    assert (answer.action, answer.fault) == (action, "")


@pytest.mark.parametrize(
    "text",
    [
        "look\nls -la", "python\nprint(1)", "bash\nls -la", "run this\nSELECT a FROM t", "foo();\nbar();",
        "cd src\nmake test", "SELECT a\nb\nFROM t",
    ],
)  # fmt: skip
def test_code_whose_end_cannot_be_known_is_a_fault(text):
    answer = Reader().read(f"Action: {text}")
    assert (answer.action, answer.fault) == ("", Fault.UNFENCED)
    assert Reader().read(f"Action:\n```\n{text}\n```").action == text


def test_tildes_are_a_fence():
    assert Reader().read("Action:\n~~~bash\nls\n\ncat a\n~~~\nDone.").action == "ls\n\ncat a"
    assert Reader("fence").read("So:\n~~~\ncat <<< '```'\n~~~").action == "cat <<< '```'"
    assert Reader("tag").read("<command>\n~~~\nls\n~~~\n</command>").action == "ls"
    assert Reader().read("Action: say hi~~~\nI hope").action == "say hi~~~"
    assert Reader().read("Action: ~~~\nls", finished=False).fault == Fault.CUT_OFF


def test_an_empty_fence_holds_no_action():
    assert Reader("fence").read("```\n```").fault == Fault.NO_ACTION
