"""A run whose lessons a model writes, behind a real endpoint: killed among its questions, it asks only for the rest."""

import signal
from collections import Counter

import pytest
from support.completions import completions
from support.runs import RUN, coevo, states
from support.writer_models import quoting, quoting_writer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

KILLS = (
    "coevo.tasks.writing.journal:Journal.append@3+",
    "coevo.tasks.writing.journal:Journal.append@2",
    "coevo.lineage.repository:Repository.commit@2",
    "coevo.tasks.writing.artifact:write_writing@1+",
)


def test_a_killed_run_asks_only_for_what_is_missing_and_ends_as_one_that_was_not(workspace):
    with completions(quoting) as (url, asked):
        whole, killed = ((*RUN, quoting_writer(url), "--name", name) for name in ("written", "written-killed"))
        done = coevo(*whole, workspace=workspace)
        assert done.returncode == 0, done.stderr
        first = Counter(each.user for each in asked)
        asked.clear()
        arguments = killed
        for kill in KILLS:
            assert coevo(*arguments, workspace=workspace, kill=kill).returncode == -signal.SIGKILL, kill
            arguments = ("resume", "written-killed")
        done = coevo(*arguments, workspace=workspace)
        assert done.returncode == 0, done.stderr
        again = Counter(each.user for each in asked)
    assert states(workspace, "written-killed") == states(workspace, "written")
    last = states(workspace, "written")[-1]["metrics"]
    assert last["bank/writer/questions"] >= 4
    assert last["bank/size"] > 0
    # Equal attempts have equal questions. The one on its way when the process died is asked once more.
    assert first <= again
    assert again.total() <= first.total() + len(KILLS)
