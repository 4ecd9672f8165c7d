"""A whole run that has nothing to learn."""

import json

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_react_is_evaluated_and_has_nothing_to_learn(workspace):
    settings = [setting for setting in SMALL if not setting.startswith("bank")]
    done = coevo("run", "homerules-react", "--name", "react", "seed=5", *settings, workspace=workspace)
    assert done.returncode == 0, done.stderr
    (only,) = states(workspace, "react")
    assert "agent/success/seen-houses" in only["metrics"]
    assert "coevo log react" in done.stdout
    assert "coevo resume react" not in done.stdout
    again = coevo("resume", "react", workspace=workspace)
    assert (again.returncode, "has done all of its 0 iterations" in again.stdout) == (0, True)
    config = workspace / "runs" / "react" / "config.json"
    before = json.loads(config.read_text())
    more = coevo("resume", "react", "--iterations", "5", workspace=workspace)
    assert (more.returncode, more.stderr.count("\n")) == (2, 1)
    assert "leave nothing to learn" in more.stderr
    assert json.loads(config.read_text()) == before
