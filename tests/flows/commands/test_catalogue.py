"""What there is to choose from is listed with a line that says what it is."""

import json
import sys

import pytest

from configs.load import names


@pytest.mark.parametrize(("command", "kind"), [("recipes", "recipes"), ("methods", "methods")])
def test_every_shipped_file_is_listed_and_described(coevo, command, kind):
    rows = json.loads(coevo(command, "--json").out)
    assert [row["name"] for row in rows] == names(kind)
    assert all(row["description"].endswith(".") for row in rows)
    assert coevo(command).out.splitlines()[1].startswith(rows[0]["name"])


def test_environments_name_their_panels(coevo):
    (row,) = [row for row in json.loads(coevo("envs", "--json").out) if row["name"] == "homerules"]
    assert "seen-houses" in row["description"]
    (row,) = [row for row in json.loads(coevo("envs", "--json").out) if row["name"] == "babyai"]
    assert "held-out" in row["description"]


def test_a_broken_environment_is_named_and_hides_no_other(coevo, tmp_path, monkeypatch):
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[coevo.envs]\nbroken = not_there_at_all:Env\n")
    monkeypatch.syspath_prepend(tmp_path)
    described = {row["name"]: row["description"] for row in json.loads(coevo("envs", "--json").out)}
    assert described["broken"].startswith("cannot be used")
    assert "seen-houses" in described["homerules"]


def test_an_environment_whose_extra_is_missing_says_how_to_install_it(coevo, monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid", None)
    for name in [name for name in sys.modules if name.startswith("envs.babyai")]:
        monkeypatch.delitem(sys.modules, name)
    described = {row["name"]: row["description"] for row in json.loads(coevo("envs", "--json").out)}
    assert described["babyai"].startswith("cannot be used: ")
    assert "pip install 'coevo[babyai]'" in described["babyai"]
    played = coevo("play", "babyai")
    assert (played.code, played.out, played.err.count("\n")) == (2, "", 1)
    assert "pip install 'coevo[babyai]'" in played.err
