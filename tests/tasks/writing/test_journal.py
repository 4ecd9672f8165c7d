"""The journal of answers: whatever kills the process, each whole line is an answer, and nothing else is read."""

import json
import signal
import subprocess
import sys

import pytest

from coevo.records.writing import Drawn, Question, Reply
from coevo.tasks.writing.journal import Answered, Journal, parse
from coevo.utilities.errors import CoevoError


def answered(number, revision=3, **reply):
    question = Question("contrast", f"task-{number}", (f"e{number}",), "s", f"u{number}", "{}")
    return Answered.of(
        revision, question, question.digest, Reply(**{"text": f"a {number}\n", "finished": True} | reply)
    )


def test_answers_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "j", 3)
    made = [answered(n, prompt_tokens=n, answer_tokens=2 * n) for n in range(3)]
    for each in made:
        journal.append(each)
    assert Journal(tmp_path / "j", 3).answers == made


def test_answers_of_other_revisions_go(tmp_path):
    journal = Journal(tmp_path / "j", 3)
    for revision in (3, 3, 4):
        journal.append(answered(revision, revision))
    assert [each.revision for each in Journal(tmp_path / "j", 4).answers] == [4]
    assert Journal(tmp_path / "j", 5).answers == []
    assert not (tmp_path / "j").exists()


def test_a_frozen_revision_drops_what_was_committed_before(tmp_path):
    journal = Journal(tmp_path / "j", 3)
    for revision in (3, 4):
        journal.append(answered(revision, revision))
    journal.drop(before=4)
    assert [json.loads(line)["revision"] for line in (tmp_path / "j").read_text().splitlines()] == [4]


def test_every_cut_leaves_the_whole_lines(tmp_path):
    path = tmp_path / "j"
    journal, made = Journal(path, 3), [answered(n) for n in range(3)]
    for each in made:
        journal.append(each)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = content[:length].count(b"\n")
        assert Journal(path, 3).answers == made[:whole]
        assert path.exists() == bool(whole)


KILLED = """
import os, signal, sys
from pathlib import Path
from coevo.records.writing import Question, Reply
from coevo.tasks.writing.journal import Answered, Journal
journal = Journal(Path(sys.argv[1]), 1)
for number in range(5):
    question = Question("p", "t", ("e",), "s", str(number))
    journal.append(Answered.of(1, question, question.digest, Reply(str(number), True)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_its_answers(tmp_path):
    done = subprocess.run([sys.executable, "-P", "-c", KILLED, str(tmp_path / "j")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [each.reply.text for each in Journal(tmp_path / "j", 1).answers] == list("01234")


FOREIGN = [
    "[]",
    "{}",
    "null",
    '{"reply": {"text": "x", "finished": true}}',
    answered(1).line().replace('"finished": true', '"finished": 1'),
    answered(1).line().replace('"revision": 3', '"revision": "3"'),
    answered(1).line().replace('"revision": 3', '"revision": -3'),
    answered(1).line().replace('"purpose"', '"more": 1, "purpose"'),
    "[" * 100_000,
]


@pytest.mark.parametrize("line", FOREIGN)
def test_another_line_is_refused(line):
    with pytest.raises(CoevoError, match="is not an answer as coevo writes it"):
        parse(line)


TOKENS = Drawn((1, 2), (3, 4, 5))


def test_tokens_come_back_and_answers_without_any_have_the_line_that_they_had():
    made = answered(1, drawn=TOKENS)
    assert parse(made.line()) == made
    assert "drawn" not in answered(1).line()


@pytest.mark.parametrize(
    "drawn",
    [
        {"prompt_ids": [1], "token_ids": [-1]},
        {"prompt_ids": [1], "token_ids": [2**31]},
        {"prompt_ids": [1.0], "token_ids": [1]},
        {"prompt_ids": "12", "token_ids": [1]},
        {"prompt_ids": [1]},
        {"prompt_ids": [], "token_ids": [1]},
        {"prompt_ids": [1], "token_ids": []},
        {"prompt_ids": [1], "token_ids": [1], "more": 1},
        [1],
    ],
)
def test_tokens_that_are_none_are_not_read(drawn):
    fields = json.loads(answered(1, drawn=TOKENS).line())
    fields["reply"]["drawn"] = drawn
    with pytest.raises(CoevoError, match="is not an answer as coevo writes it"):
        parse(json.dumps(fields))
