"""The doctor finds what is wrong, says what to do, and exits with 1 then."""

import json
import platform

import pytest
from packaging.requirements import Requirement

from coevo.flows.upkeep.health import packages
from coevo.utilities.extras import requirements


def test_each_part_of_the_machine_is_examined(coevo):
    rows = json.loads(coevo("doctor", "--json").out)
    wanted = {"python", "packages", "torch", "git", "cores", "memory", "disk", "workspace", "servers"}
    assert wanted <= {row["check"] for row in rows}
    assert all(row["remedy"] for row in rows if row["status"] == "problem")


def test_a_workspace_that_cannot_be_written_to_is_a_problem(coevo, tmp_path):
    (tmp_path / "file").touch()
    result = coevo("doctor", "--workspace", tmp_path / "file" / "workspace")
    assert result.code == 1
    assert "--workspace" in result.out


def test_a_workspace_that_is_open_to_others_is_mentioned(coevo, tmp_path):
    for mode, mentioned in ((0o755, True), (0o700, False)):
        tmp_path.chmod(mode)
        rows = json.loads(coevo("doctor", "--json", "--workspace", tmp_path).out)
        (row,) = (row for row in rows if row["check"] == "workspace")
        assert (row["status"], "chmod 700" in row["found"]) == ("ok", mentioned)


def test_a_server_that_is_gone_is_a_problem_until_it_is_cleared(coevo, tmp_path):
    gone = {"name": "prefect", "pid": 2**22 - 1, "started": 1.0, "port": 9, "health": "/"}
    (tmp_path / "servers.json").write_text(json.dumps([gone]))
    result = coevo("doctor", "--workspace", tmp_path)
    assert result.code == 1
    assert "coevo down" in result.out
    coevo("down", "--workspace", tmp_path)
    rows = json.loads(coevo("doctor", "--json", "--workspace", tmp_path).out)
    assert [row["status"] for row in rows if row["check"] == "servers"] == ["ok"]


@pytest.mark.parametrize(("version", "status"), [("3.10.4", "problem"), ("3.13.1", "ok"), ("3.15.0", "problem")])
def test_a_python_that_the_package_does_not_support_is_a_problem(coevo, monkeypatch, version, status):
    monkeypatch.setattr(platform, "python_version", lambda: version)
    (row,) = (row for row in json.loads(coevo("doctor", "--json").out) if row["check"] == "python")
    assert (row["status"], "install Python" in (row["remedy"] or "")) == (status, status == "problem")


def test_packages_of_training_are_examined_too(coevo):
    (row,) = (row for row in json.loads(coevo("doctor", "--json").out) if row["check"] == "packages")
    assert row["found"] == f"{len(requirements('train'))} direct requirements, all as pinned"


def test_a_package_beside_its_pin_is_named_with_the_remedy():
    found = list(packages([Requirement(line) for line in ("typer<0.1", "no-such-package-of-ours", "rich")]))
    assert [finding.ok for finding in found] == [False, False]
    assert "typer<0.1 is needed" in found[0].found
    assert "is missing" in found[1].found
    assert "'typer<0.1'" in found[0].remedy


def test_packages_as_pinned_are_one_finding():
    assert [finding.ok for finding in packages([Requirement("typer>0"), Requirement("rich")])] == [True]
