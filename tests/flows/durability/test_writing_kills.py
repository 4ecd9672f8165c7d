"""A run whose lessons a model writes, behind a real endpoint: killed among its questions, it asks only for the rest."""

import json
import re
import signal
from collections import Counter

import pytest
from support.completions import completions, said
from support.runs import RUN, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

KILLS = (
    "coevo.tasks.writing.journal:Journal.append@3+",
    "coevo.tasks.writing.journal:Journal.append@2",
    "coevo.lineage.repository:Repository.seal@2",
    "coevo.tasks.writing.artifact:write_writing@2+",
)
STEP = re.compile(r'^(\d+)\. observed ".*", action ".*", feedback "(.* (?:in|with|not) .*)"$', re.MULTILINE)


def author(asked):
    """An author that quotes the last fact in the feedback of the first attempt, in a fence; else it has no lesson."""
    first = asked.user.split("Attempt 1")[1].split("Attempt 2 (")[0]
    facts = STEP.findall(first)
    lessons = [
        {"lesson": fact, "when": "a task needs it", "when_not": "", "attempt": 1, "step": int(number)}
        for number, fact in facts[-1:]
    ]
    return said(f"```json\n{json.dumps({'first_wrong_step': 1, 'lessons': lessons})}\n```")


def writer(url):
    asked = f"{{type: endpoint, url: '{url}', model: author, concurrency: 1}}"
    return f"bank.writer={{type: model-contrast, lessons: 1, author: {asked}}}"


def test_a_killed_run_asks_only_for_what_is_missing_and_ends_as_one_that_was_not(workspace):
    with completions(author) as (url, asked):
        whole, killed = ((*RUN, writer(url), "--name", name) for name in ("authored", "authored-killed"))
        done = coevo(*whole, workspace=workspace)
        assert done.returncode == 0, done.stderr
        first = Counter(each.user for each in asked)
        asked.clear()
        arguments = killed
        for kill in KILLS:
            assert coevo(*arguments, workspace=workspace, kill=kill).returncode == -signal.SIGKILL, kill
            arguments = ("resume", "authored-killed")
        done = coevo(*arguments, workspace=workspace)
        assert done.returncode == 0, done.stderr
        again = Counter(each.user for each in asked)
    assert states(workspace, "authored-killed") == states(workspace, "authored")
    last = states(workspace, "authored")[-1]["metrics"]
    assert last["bank/writer/questions"] >= 4
    assert last["bank/size"] > 0
    # Equal attempts have equal questions. The one on its way when the process died is asked once more.
    assert first <= again
    assert again.total() <= first.total() + len(KILLS)
