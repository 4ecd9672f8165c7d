"""A decision that is killed at any of its steps is there as a whole or not at all, and the next one continues."""

import shutil
import signal

import pytest
from support import asking
from support.runs import coevo, revisions, states

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

BEFORE = (
    "coevo.tasks.run.approval:read_proposal@1+",
    "coevo.memory.bank.table:VersionedTable.upsert@1+",
    "coevo.memory.bank.bank:Bank.merge@1+",
    "coevo.lineage.lineage:write_manifest@1+",
)
AFTER = ("coevo.lineage.repository:Repository.commit@1+", "coevo.lineage.publish_cursor:Cursor.advance@1")
"""Of the second, the decision has been committed by then."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    root = tmp_path_factory.mktemp("asked")
    asking.play(root)
    return root


def decided(asked, root, *kills):
    """A copy of the run that was approved, killed at these points one after another; its states once it went on."""
    shutil.copytree(asked, root)
    for kill in kills:
        done = coevo("approve", "run@1", workspace=root, kill=kill)
        assert done.returncode == -signal.SIGKILL, f"{kill}: not reached: {done.stderr}"
    done = coevo("approve", "run@1", workspace=root)
    assert (done.returncode, revisions(root, "run")) == (2 if set(kills) & set(AFTER) else 0, 3), done.stderr
    asking.play(root)
    return states(root, "run")


def test_a_decision_survives_kills_at_every_step(asked, tmp_path):
    at_once = decided(asked, tmp_path / "once")
    for number, after in enumerate(AFTER):
        assert decided(asked, tmp_path / str(number), *(BEFORE if number == 0 else ()), after) == at_once
