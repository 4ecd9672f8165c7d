"""The presets with appended lessons as whole runs, small ones; they share servers and warm start with other tests."""

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
SETTINGS = [setting for setting in SMALL if not setting.startswith("bank.")]
UPDATES = {"retroagent": True, "reflexion-style": False, "memrl-style": False, "skillrl-style": True}


@pytest.mark.parametrize("method", UPDATES)
def test_two_iterations(method, workspace):
    done = coevo(
        "run", f"homerules-{method}", "iterations=2", "seed=5", *SETTINGS, "--name", method, workspace=workspace
    )
    assert done.returncode == 0, done.stderr
    start, *_, end = states(workspace, method)
    assert end["iteration"] == 2
    assert ("update/groups" in end["metrics"]) == UPDATES[method]
    assert "append/added" in end["metrics"]
    assert start["tables"]["entries"] != end["tables"]["entries"]
    assert ("discovery/seen-houses/3" in end["metrics"]) == (method == "reflexion-style")
