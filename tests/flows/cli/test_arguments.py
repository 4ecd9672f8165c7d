"""Whatever is written after a command, it is refused in one line, and nothing in the workspace changes."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from support.fsck import fingerprint
from typer import Exit, TyperException
from typer.core import TyperGroup
from typer.main import get_command

import coevo
from coevo.flows.cli import app

BAD_RUNS = (
    "", " ", ".", "..", "../x", "../first", "/etc/passwd", "first/../first", "first\n", "a\nb", "x" * 101, "x" * 5000,
    "\u65e5\u672c", "\u202efirst", "fir\x1b[31mst", "first\ud800", "-", "nope", "first@", "first@-1", "first@1.5",
    "first@9", "first@" + "9" * 5000, "first@\u0661", "first@1@2", "@1", "%s", "{0}", "$HOME", "~", "first;ls",
)  # fmt: skip
READERS = (
    ("log",),
    ("bank", "log"),
    ("bank", "show"),
    ("bank", "export", "RUN", "out.jsonl"),
    ("bank", "import", "RUN", "out.jsonl"),
    ("bank", "search", "RUN", "mug"),
    ("bank", "why", "RUN", "x"),
    ("bank", "diff", "RUN", "first@1"),
    ("bank", "diff", "first@1", "RUN"),
    ("compare", "RUN", "first"),
    ("compare", "first", "RUN"),
    ("report", "RUN"),
    ("rollback", "RUN", "--to", "1"),
    ("resume", "RUN"),
    ("evaluate", "RUN"),
    ("export", "RUN", "exported"),
    ("package", "RUN"),
    ("promote", "RUN"),
    ("serve", "RUN"),
    ("evaluate", "first", "--bank", "RUN"),
)
MISTAKES = (
    ("rollback", "first", "--to", "-1"),
    ("rollback", "first", "--to", "9" * 400),
    ("rollback", "first", "--to", "1.5"),
    ("rollback", "first", "--to", ""),
    ("rollback", "first", "--to", "\u0661x"),
    ("resume", "first", "--iterations", "-1"),
    ("resume", "first", "--iterations", "many"),
    ("evaluate", "first", "--tasks", "0"),
    ("evaluate", "first", "--tasks", "-5"),
    ("evaluate", "first", "--discovery", "-1"),
    ("report", "first", "--output", ""),
    ("report", "first", "--output", "x" * 5000),
    ("report", "first", "--output", "\0.html"),
    ("gateway", "first", "--idle", "nan"),
    ("gateway", "first", "--idle", "inf"),
    ("play", "homerules", "--seed", "-1"),
    ("play", "homerules", "--agent", "nobody"),
    ("play", "../x"),
    ("play", ""),
    ("play", "x" * 5000),
    ("play", "${x"),
    ("play", "homerules", "level=3"),
    ("play", "homerules", "=1"),
    ("run", ""),
    ("run", "../recipes/homerules-grpo"),
    ("run", "x" * 5000),
    ("run", "x" * 5000 + ".yaml"),
    ("run", "a\nb"),
    ("run", "homerules-grpo", "seed=-1"),
    ("run", "homerules-grpo", "seed=" + "9" * 5000),
    ("run", "homerules-grpo", "a\nb=1"),
    ("run", "homerules-grpo", "--name", "../x"),
    ("run", "homerules-grpo", "--name", "x" * 101),
    ("run", "homerules-grpo", "--name", "\u65e5"),
    ("run", "homerules-grpo", "--name", "first"),
    ("bank", "why", "first", ""),
    ("bank", "why", "first", "../x"),
    ("bank", "why", "first", "x\x1b[2J\ny"),
    ("bank", "export", "first", ""),
    ("bank", "export", "first", "x" * 5000 + ".jsonl"),
    ("bank", "export", "first", "\0.jsonl"),
    ("bank", "import", "first", ""),
    ("bank", "import", "first", "x" * 5000 + ".jsonl"),
    ("bank", "import", "first", "\0.jsonl"),
    ("bank", "nope"),
    ("nope\n",),
    ("--nope",),
    ("compare",),
    ("log", "first", "first"),
)
SAYING = {
    "nope": "'nope': try `coevo --help`",
    "log": "RUN",
    "log first --nope": "--nope",
    "log nope": "No run 'nope'",
    "log frist": "No run 'frist'. Did you mean 'first'? `coevo runs` lists them",
    "log new": "no revision yet",
    "log first@4": "revision 4 is not in run 'first': it has 0 to 3",
    "log first@": "write RUN, or RUN@N",
    "log first@-1": "write RUN, or RUN@N",
    "log ../first": "cannot name a run",
    "run nope": "No recipe 'nope'",
    "run nope.yaml": "nope.yaml",
    "run homerules-coevo-rl sed=1": "sed: no such key",
    "resume nope": "No run 'nope'",
    "bank": "coevo bank --help",
    "bank show bankless": "bankless' has no bank",
    "bank search bankless mug": "bankless' has no bank",
    "bank why first nope": "nope",
    "bank diff first@1 first@17": "revision 17 is not in run 'first': it has 0 to 3",
    "compare first other --json --csv": "choose one",
    "compare first": "name at least two runs",
    "methods nope": "`coevo methods` lists them",
    "play nowhere": "No environment 'nowhere'",
    "play homerules level=7": "level = 7",
    "play homerules size=7": "size: no such key",
    "play homerules --agent robot": "robot",
    "schedule add nope --cron '0 2 * * *'": "No run 'nope'",
    "schedule add first": "--cron",
    "schedule add first --cron '0 2 * * *' --timezone Mars/Base": "'Mars/Base' is not a time zone",
    "schedule add first --cron '0 2 * * *' --iterations 0": "--iterations",
    "schedule add first --cron '0 2 * * *' --max-hours 0": "--max-hours",
    "schedule add first --cron '0 2 * * *' --rollback-on-drop 2": "--rollback-on-drop",
    "schedule pause": "argument 'run'",
    "rollback first --to 9": "it has 0 to 3",
    "rollback nope --to 1": "No run 'nope'",
    "rollback new --to 0": "no revision yet",
    "rollback first": "--to",
    "rollback first --to x": "tag 'x' is not in run",
    "branch first@2 other": "run 'other' is already in",
    "branch first@2 'a b'": "cannot name a run",
    "branch first@9 mine": "it has 0 to 3",
    "branch nope mine": "No run 'nope'",
    "branch new mine": "no revision yet",
    "branch first mine env.type=textworld": "env.type: a branch cannot change it",
    "branch first mine policy.hidden_size=32": "policy.hidden_size: a branch cannot change it",
    "branch first mine warmstart=null": "warmstart",
    "branch first mine env.level=2": "which the policy has no words for",
    "branch first mine update.speed=2": "update.speed: no such key",
    "branch first mine seed=-1": "seed = -1",
    "branch first mine seed": "key=value",
    "gc --keep-last -1 --apply": "--keep-last",
    "gc --keep-every 0 --apply": "--keep-every",
}


@pytest.fixture
def untouched(small_workspace, tmp_path, monkeypatch):
    """After the test the workspace and the current folder are what they were."""
    monkeypatch.chdir(tmp_path)
    before = fingerprint(small_workspace)
    yield
    assert fingerprint(small_workspace) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_bad_run_is_refused(command, refused, untouched):
    for bad in BAD_RUNS:
        refused(*(bad if part == "RUN" else part for part in (*command, *([] if "RUN" in command else ["RUN"]))))


def test_any_other_mistake_is_refused(refused, untouched):
    for arguments in MISTAKES:
        refused(*arguments)


def test_a_refusal_says_why(refused, untouched):
    for line, says in SAYING.items():
        assert says in refused(*shlex.split(line)), line


NAMED = re.compile(r"`coevo ([a-z][^`]*)`|: coevo ([a-z].*?)(?=[;,(`]|\.?$| shows| decides| trains)")
"""A command in a message, in backquotes or at its end."""
PLACE = re.compile(r"\{\w*\}")
"""Place of a name, or right behind a word that of an option with its value."""
INCOMPLETE = re.compile("Missing|requires an argument")


def messages(source):
    """Texts of a module that are no docstring, with ``{}`` for what stands there at run time."""
    text = source.read_text(encoding="utf-8")
    if not re.search("coevo [a-z{]", text):
        return
    nodes = list(ast.walk(ast.parse(text)))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    within = {id(part) for node in joined for part in ast.walk(node) if part is not node}
    for node in nodes:
        if isinstance(node, ast.JoinedStr) and id(node) not in within:
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within | docs:
            yield node.value


def refusal_of(said, program):
    """Why the command line does not take a command, if its arguments were complete; empty if it does."""
    words = shlex.split(PLACE.sub(lambda place: "" if said[: place.start()][-1:].isalnum() else "1", said))
    words = [word.strip("[]") for word in words]
    try:
        with program.make_context("coevo", list(words)) as context:
            command, name = program, "coevo"
            while isinstance(command, TyperGroup) and words:
                name, command, words = command.resolve_command(context, words)
            if not isinstance(command, TyperGroup):
                command.make_context(name, words, parent=context)
    except Exit:
        return ""
    except TyperException as error:
        return "" if INCOMPLETE.search(error.format_message()) else error.format_message()
    return ""


def test_every_command_that_a_message_names_is_one_with_these_options(capsys):
    rooms = [Path(coevo.__file__).parent / name for name in ("configs", "envs", "flows", "lineage", "memory", "models")]
    rooms += [Path(coevo.__file__).parent / name for name in ("records", "tasks", "utilities")]
    texts = (text for room in rooms for source in sorted(room.rglob("*.py")) for text in messages(source))
    said = sorted({(found[1] or found[2]).strip() for text in texts for found in NAMED.finditer(text)})
    program = get_command(app.app)
    assert len(said) > 60
    assert {each: why for each in said if (why := refusal_of(each, program))} == {}
