# ruff: noqa: E501  (members are read best many in a line)
"""Fences whose code holds marks of fences, and code without one that ends too early: read whole or refused."""

import pytest
from support import answer_shapes as shapes

from coevo.models.answers.read import Reader
from coevo.records.answer_form import FenceForm

CODE, DATABASE, SHELL = FenceForm(), shapes.DATABASE, shapes.SHELL
F = "```"
SCRIPTS = (
    "print(1)", "for m in range(3):\n    find(m, query='```')", 'x = "a ``` b"\nprint(x)', "print('''```''')",
    's = """# Title\n```bash\nls\n```\n"""\nnote(s)', "s = '''\n```\nx\n```\n'''", "# don't ``` here\nprint(1)",
    "x = '''it's\n\"\"\" ok'''\nprint(x)", 'x = f"""{a}\n```\n"""', "say('it\\'s ``` so')", "x = \"it's\"\nprint(x)",
)  # fmt: skip
PLACES = (
    "{f}python\n{}\n{f}", "I look.\n\n{f}py\n{}\n{f}\n\nThis prints it.", "{f}Python\n{}\n{f}<|im_end|>",
    "{f}python\n{}\n{f}\nOutput:\n{f}\n1\n{f}\n{f}python\nno()\n{f}", "{f}python\n{}\n{f}\n\n{f}output\n1\n{f}",
    "{f}python\n{}\n{f}\n\nExpected:\n{f}\n1\n{f}", "Result:\n{f}json\n[1]\n{f}\n\n{f}python\n{}\n{f}", "{f}python\n{}",
)  # fmt: skip
MARGINS = ("   ", "  ", "> ", "\t", "    ", " ", ">  ", "      ")
QUERIES = (
    "SELECT '```' AS x;", "INSERT INTO t VALUES ('```sql\nSELECT 1;\n```');", "INSERT INTO t VALUES ('a\n```\nb');",
    "UPDATE t SET a = 'it''s\n```\n' WHERE b = 1;", "/* Action: Answer */\nSELECT 1;", "/*\nAction: Answer\n*/\nSELECT 1;",
    'SELECT "it\'s ``` fine";', "SELECT `a```b` FROM t;", "INSERT INTO t VALUES ('x\n```python\ny\n```');",
)  # fmt: skip
SHELLS = (
    "echo 'a\n```\nb' > f", 'echo "a\n```\nb"', "git commit -m 'x\n\n```\ny\n```'", "printf '```' > f\nls",
    "sed -i 's/```/-/' f", 'echo "```" >> f\nls', "cat <<'E' > f\n```sh\nls\n```\nE", "case $1 in\n  Act:*) ls ;;\nesac",
)  # fmt: skip
ENDS_EARLY = (
    "for f in *; do\n  rm $f", "if true; then\n  rm -r /a", "cat <<EOF > x\nabc", "while true; do ls", "case $x in\n  a) ls",
    "until [ -f a ]; do\n  sleep 1", "rm a\necho 'b", "if a; then\n  for x in 1; do ls; done", "cat <<-'E' > x\nE2",
)  # fmt: skip
WORDS_OF_BLOCKS = (
    "echo done", "ls # if any", "echo 'if you see this' > x\necho done >> x", "sleep 1; echo if", "printf 'for %s' a",
    "trap 'if true; then ls; fi' EXIT\nls", "[ -d /x ] && rm -r /x", "{ echo a; echo b; } > f", "! grep -q if f || exit 1",
    "while read -r l; do\n  case \"$l\" in\n    Act:*) echo a ;;\n  esac\ndone < f",
)  # fmt: skip


def cuts(form, said, whole):
    """Actions of the answer wherever it is cut, other than the whole one and none."""
    return {Reader(form).read(said[:cut], finished=False).action for cut in range(0, len(said), 3)} - {"", whole}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("code", SCRIPTS)
def test_code_that_holds_marks_of_fences_is_whole(code, place):
    said = place.replace("{f}", F).replace("{}", code)
    assert Reader(CODE).read(said).action == code
    assert cuts(CODE, said, code) == set()


@pytest.mark.parametrize("code", SCRIPTS[1:3])
def test_code_without_a_fence_is_none(code):
    assert Reader(CODE).read(code).action in ("", code)


@pytest.mark.parametrize("margin", MARGINS)
def test_the_margin_of_a_fence_is_no_part_of_its_code(margin):
    lines = ("```python", "if a:", "    print(1)", "", "print(2)", "```")
    said = "\n".join(f"{margin}{line}" for line in lines)
    assert Reader(CODE).read(f"1. Look:\n{said}").action == "if a:\n    print(1)\n\nprint(2)".replace("\n\n", "\n\n")


@pytest.mark.parametrize("query", QUERIES)
def test_queries_that_hold_marks_are_whole(query):
    said = f"Thought: so\nAction: Operation\n{F}sql\n{query}\n{F}"
    for behind in ("", "\nUser: [(1,)]\nAction: Answer\nFinal Answer: it's 3", "\n\nThat's all."):
        assert Reader(DATABASE).read(said + behind).action == f"Operation {query}"
    assert cuts(DATABASE, said, f"Operation {query}") == set()


@pytest.mark.parametrize("script", SHELLS)
def test_scripts_that_hold_marks_are_whole(script):
    said = f"Act: bash\n{F}bash\n{script}\n{F}"
    for behind in ("", "\nOutput:\nok\nAct: finish"):
        assert Reader(SHELL).read(said + behind).action == f"bash {script}"
    assert cuts(SHELL, said, f"bash {script}") == set()


@pytest.mark.parametrize("script", ENDS_EARLY)
def test_a_script_without_a_fence_that_ends_within_a_part_is_refused(script):
    assert Reader(SHELL).read(f"Act: bash\n{script}").action == ""


@pytest.mark.parametrize("script", WORDS_OF_BLOCKS)
def test_words_of_blocks_in_a_script_open_none(script):
    assert Reader(SHELL).read(f"Act: bash\n{script}").action == f"bash {script}"


def test_a_quote_that_never_closes_takes_in_no_other_round():
    broken = f"Action: Operation\n{F}sql\nSELECT 'it's;\n{F}"
    for behind in (f"\nUser: no\n{F}\nDELETE FROM t; -- '\n{F}", f"\nAction: Operation\n{F}sql\nSELECT 'a';\n{F}"):
        assert Reader(DATABASE).read(broken + behind).action == "Operation SELECT 'it's;"
