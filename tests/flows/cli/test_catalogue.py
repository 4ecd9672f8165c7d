"""Recipes, methods and environments are listed with one line of explanation each."""

import json
import shutil
import subprocess
import sys

import pytest

from coevo.configs.load import shipped_files
from coevo.configs.load.shipped_files import names
from coevo.envs.registry import find
from coevo.envs.shipped import SHIPPED


@pytest.mark.parametrize("kind", ["recipes", "methods"])
def test_every_shipped_file_is_listed_and_described(coevo, kind):
    rows = json.loads(coevo(kind, "--json").out)
    assert [row["name"] for row in rows] == names(kind)
    assert all(row["description"].endswith(".") for row in rows)
    assert rows[0]["name"] in coevo(kind).out


def test_methods_stand_side_by_side_in_a_hundred_columns(coevo):
    lines = coevo("methods").out.splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line.split() for line in lines if line.startswith("part ")]
    assert [name for head in heads for name in head[1:]] == names("methods")
    assert all(len(head) > 2 for head in heads[:-1])


def test_a_method_is_shown_as_it_resolves(coevo):
    (grpo, coevo_rl) = json.loads(coevo("methods", "grpo", "coevo-rl", "--json").out)
    assert coevo_rl["parts"] == {
        "context": "m=1, task, 200 tokens",
        "group": "16 tasks x 8",
        "turns": "at most 50",
        "sampling": "temperature 1",
        "retrieval": "tfidf k=8",
        "retrieval: when": "once per task",
        "retrieval: from": "the start",
        "retrieval: who": "whole group",
        "clusters": "-",
        "reward": "extrinsic",
        "advantage": "grpo",
        "critic": "-",
        "loss": "token-mean",
        "kl": "k3 0.001 in the loss",
        "pools": "one per scope",
        "references": "-",
        "utility": "-",
        "writer": "quote-contrast",
        "admission": "replay",
        "evidence": "replay",
        "retirement": "-",
        "schedule": "joint, bank every 20",
        "discovery": "-",
    }
    assert list(grpo["parts"]) == list(coevo_rl["parts"])
    assert (grpo["parts"]["retrieval"], grpo["parts"]["schedule"]) == ("-", "no bank")


def test_named_methods_and_recipes_are_compared_and_described(coevo):
    shown = coevo("methods", "react", "homerules-coevo-rl-policy-first").out
    assert "part" in shown.splitlines()[0].split()
    assert "policy-then-bank switch_at=20, bank every 1" in shown
    assert "nothing learns" in shown
    assert "\nreact: ReAct: a frozen policy that reasons" in shown


def test_a_new_method_appears_by_itself(coevo, tmp_path, monkeypatch):
    copied = tmp_path / "configs"
    shutil.copytree(shipped_files.ROOT, copied, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (copied / "methods" / "mine.yaml").write_text(
        "# Mine.\nclusters: {delta: 0.9}\ncontext: {placement: system, memory_length: null, history: states}\n"
        "bank: {retrieval: {type: cluster, k: 3, warmup: 5, min_entries: 10, share: 0.5, warnings: 2}}\n"
        "update: {advantage: {type: gigpo, gamma: 0.9}, reward: {type: discounted}, loss: {kl_coefficient: 0.0}}\n"
        "schedule: {type: frozen-after-first}\n"
    )
    monkeypatch.setattr(shipped_files, "ROOT", copied)
    (mine,) = [each for each in json.loads(coevo("methods", "--json").out) if each["name"] == "mine"]
    assert mine["description"] == "Mine."
    assert (
        mine["parts"]
        | {
            "context": "all turns with states, system, 200 tokens",
            "retrieval": "cluster k=3 warnings=2",
            "retrieval: when": "at each step",
            "retrieval: from": "11 entries, 5 iterations",
            "retrieval: who": "50% of a group",
            "clusters": "delta=0.9",
            "reward": "discounted",
            "advantage": "gigpo gamma=0.9",
            "kl": "-",
            "schedule": "frozen-after-first, bank every 20",
        }
        == mine["parts"]
    )


def test_environments_name_their_panels(coevo):
    (row,) = [row for row in json.loads(coevo("envs", "--json").out) if row["name"] == "homerules"]
    assert "seen-houses" in row["description"]
    (row,) = [row for row in json.loads(coevo("envs", "--json").out) if row["name"] == "babyai"]
    assert "held-out" in row["description"]


@pytest.mark.parametrize("name", SHIPPED)
def test_environments_are_listed_as_their_classes_say(coevo, name):
    (row,) = [row for row in json.loads(coevo("envs", "--json").out) if row["name"] == name]
    found = find(name)
    assert row["description"] == f"{found.__doc__.strip().splitlines()[0]} Panels: {', '.join(found.panels)}."
    assert row["status"] == (SHIPPED[name].remedy or "ready")
    lacks = SHIPPED[name]
    assert not lacks.remedy or lacks.downloads or lacks.sandboxed or lacks.extra == "alfworld"


@pytest.mark.parametrize("name", ["tau2", "appworld"])
def test_an_environment_that_a_user_downloads_says_what_is_missing_until_all_is_there(
    coevo, monkeypatch, tmp_path, name
):
    def status():
        listed = {row["name"]: row["status"] for row in json.loads(coevo("envs", "--json").out)}
        return listed[name]

    monkeypatch.chdir(tmp_path)
    for each in SHIPPED[name].downloads:
        monkeypatch.delenv(each.variable, raising=False)
    for each in SHIPPED[name].downloads:
        assert status() == f"{each.source}, then set {each.variable}"
        monkeypatch.setenv(each.variable, "/somewhere")
        lacking = f"has no {each.holds}" if each.holds else "is no interpreter"
        assert status() == f"{each.variable}=/somewhere {lacking}: {each.source}, then set {each.variable}"
        assert f"then set {each.variable}" in coevo("doctor").out
        (tmp_path / each.holds).mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv(each.variable, str(tmp_path) if each.holds else sys.executable)
    assert status() == "ready"
    assert f"{name}: " not in coevo("doctor").out


@pytest.mark.parametrize(("name", "holds", "is_there"), [("tau2", 0, False), ("appworld", 1, True)])
def test_the_current_directory_stands_for_an_unset_variable_only_where_the_environment_takes_it(
    monkeypatch, tmp_path, name, holds, is_there
):
    folder = SHIPPED[name].downloads[holds]
    (tmp_path / folder.holds).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for unset in ("", None):
        monkeypatch.delenv(folder.variable, raising=False)
        if unset is not None:
            monkeypatch.setenv(folder.variable, unset)
        assert (folder.remedy == "") == is_there


def test_a_broken_environment_is_named_and_hides_no_other(coevo, tmp_path, monkeypatch):
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[coevo.envs]\nbroken = not_there_at_all:Env\n")
    monkeypatch.syspath_prepend(tmp_path)
    listed = {row["name"]: row for row in json.loads(coevo("envs", "--json").out)}
    assert listed["broken"]["status"] == "cannot be used"
    assert "install its package" in listed["broken"]["description"]
    assert "seen-houses" in listed["homerules"]["description"]


@pytest.mark.parametrize(
    ("module", "name"),
    [("minigrid", "babyai"), ("minigrid", "babyai-rules"), ("textworld", "textworld"), ("gymnasium", "gymnasium"),
     ("websockets", "openenv"), ("sqlglot", "lifelong-db")],
)  # fmt: skip
def test_an_environment_whose_extra_is_missing_says_how_to_install_it(coevo, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    listed = {row["name"]: row for row in json.loads(coevo("envs", "--json").out)}
    remedy = f"pip install 'coevo[{name.partition('-')[0]}]'"
    assert listed[name]["status"] == remedy
    assert f"{name}: {remedy}" in coevo("doctor").out


def test_an_environment_whose_extra_is_missing_is_refused(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid", None)
    for name in [name for name in sys.modules if name.startswith("coevo.envs.babyai")]:
        monkeypatch.delitem(sys.modules, name)
    assert "pip install 'coevo[babyai]'" in refused("play", "babyai")


def test_the_list_of_environments_imports_none_of_them():
    program = "import sys; from coevo.flows.cli.app import main\ntry: main(['envs'])\nfinally: print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "A household whose facts are hidden" in done.stdout
    for heavy in ("minigrid", "textworld", "coevo.envs.base", "coevo.envs.homerules", "numpy", "pyarrow", "torch"):
        assert f"'{heavy}'" not in done.stdout
