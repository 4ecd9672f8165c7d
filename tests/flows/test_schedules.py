"""Whole runs in which policy and bank change in turn, or not at all."""

import json

import pytest
from support.runs import SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("schedules")
    yield root
    coevo("down", workspace=root)


def test_the_policy_first_and_then_the_bank(workspace):
    settings = ("iterations=4", "schedule.switch_at=2", "lineage.every=2", "bank.every=2", *SMALL)
    done = coevo(
        "run", "homerules-coevo-rl-policy-first", "--name", "staged", *settings, workspace=workspace, timeout=550
    )
    assert done.returncode == 0, done.stderr
    start, trained, grown = states(workspace, "staged")
    assert start["artifacts"]["policy"] != trained["artifacts"]["policy"] == grown["artifacts"]["policy"]
    assert start["tables"]["entries"] == trained["tables"]["entries"] != grown["tables"]["entries"]
    assert trained["metrics"].keys() >= {"advantage/std", "update/kl"}
    assert grown["metrics"].keys() >= {"bank/admitted", "replay/difference"}
    assert not {"advantage/std", "update/kl"} & grown["metrics"].keys()
    assert not {"bank/admitted"} & trained["metrics"].keys()


def test_react_is_evaluated_and_has_nothing_to_learn(workspace):
    settings = [setting for setting in SMALL if not setting.startswith("bank")]
    done = coevo("run", "homerules-react", "--name", "react", *settings, workspace=workspace)
    assert done.returncode == 0, done.stderr
    (only,) = states(workspace, "react")
    assert "success/seen-houses" in only["metrics"]
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
