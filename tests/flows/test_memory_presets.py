"""The presets with appended lessons as whole runs, small ones."""

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
SETTINGS = [setting for setting in SMALL if not setting.startswith("bank.")]
UPDATES = {"retroagent": True, "reflexion-style": False, "memrl-style": False, "skillrl-style": True}


@pytest.mark.parametrize("method", UPDATES)
def test_two_iterations(method, tmp_path):
    done = coevo("run", f"homerules-{method}", "iterations=2", *SETTINGS, "--name", "it", workspace=tmp_path)
    assert done.returncode == 0, done.stderr
    start, *_, end = states(tmp_path, "it")
    assert end["iteration"] == 2
    assert ("update/groups" in end["metrics"]) == UPDATES[method]
    assert "append/added" in end["metrics"]
    assert start["tables"]["entries"] != end["tables"]["entries"]
    assert ("discovery/seen-houses/3" in end["metrics"]) == (method == "reflexion-style")
    coevo("down", workspace=tmp_path)
