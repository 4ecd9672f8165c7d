"""Plain words: phrases that readers stumble over are in no text of the project."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("utilities", "configs", "records", "envs", "lineage", "memory", "models", "tasks", "flows")
FOLDERS = (*ROOMS, "benchmarks", "coevo", "docs", "infra", "mlflow", "tests")
SUFFIXES = {".css", ".html", ".js", ".md", ".py", ".svg", ".toml", ".yaml", ".yml"}
# A space stands for any space: a phrase may be broken over two lines, and continue in a comment or a string.
PHRASES = ("tells of", "is told", "goes on", "what there is", "a revision each", "one a (?:step|stage|iteration)")
REJECTED = re.compile("|".join(rf"\b{phrase}\b".replace(" ", r"[\s#\"']+") for phrase in PHRASES), re.IGNORECASE)
OPENING = re.compile(r"\s*(?:What|Those)\b")
QUOTED = re.compile(rf"[\"']{OPENING.pattern}")
"""An opening behind a quotation mark, as every docstring with one has it: parsing all other files takes seconds."""


def texts():
    """Every text of the project, this file aside: it names the phrases."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    found += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted(found):
        if (path.suffix in SUFFIXES or path.name == "Makefile") and path != Path(__file__):
            yield path, path.read_text(encoding="utf-8")


def phrases(text):
    return [(text.count("\n", 0, hit.start()) + 1, " ".join(hit[0].split())) for hit in REJECTED.finditer(text)]


def openings(text):
    """Strings that stand as statements: docstrings of modules, classes and functions, and those below a field."""
    for node in ast.walk(ast.parse(text)) if QUOTED.search(text) else ():
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and (opens := OPENING.match(str(value.value))):
            yield node.lineno, f'docstring opens with "{opens[0].strip()}"'


def test_no_text_has_a_rejected_phrase():
    found = []
    for path, text in texts():
        lines = [*phrases(text), *(openings(text) if path.suffix == ".py" else ())]
        found += [f"{path.relative_to(ROOT)}:{line}: {what}" for line, what in lines]
    assert not found, "\n".join(found)


def test_a_phrase_is_found_across_lines_and_an_opening_below_a_field():
    assert phrases("# one a\n# stage, which goes on\n") == [(1, "one a # stage"), (2, "goes on")]
    assert [line for line, _ in openings('a = 1\n"""What a is."""\ndef f():\n    """Those of f."""\n')] == [2, 4]
