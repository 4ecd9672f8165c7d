"""`import coevo`: quick, complete, and about the same runs as the command."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support import small_run

import coevo
from coevo.envs import registry
from coevo.flows import api

HEAVY = ("torch", "mlflow", "prefect", "pandas", "lancedb", "dvc", "pydantic", "omegaconf", "sklearn")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    root = tmp_path_factory.mktemp("api")
    small_run.build(root)
    small_run.build(root, "other", ["seed=4"], ("0000", None, "1000", "1010"))
    return root


def test_importing_it_loads_nothing_heavy():
    script = f"import sys, coevo; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_name_is_there_and_explained():
    assert dir(coevo) == sorted(coevo.__all__)
    for name in coevo.__all__:
        assert getattr(coevo, name).__doc__, name
    assert coevo.bank is api.bank
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = coevo.nothing


def test_a_bank_is_a_frame_at_any_revision(directory):
    latest, before = (coevo.bank(name, workspace=directory) for name in ("first", "first@2"))
    assert latest.loc[small_run.MUG.id, "strategy"] == "lotus mug in drawer"
    assert before.loc[small_run.MUG.id, "strategy"] == small_run.SAFE
    assert set(latest.index) == {small_run.MUG.id, small_run.MICROWAVE.id}
    assert latest.loc[small_run.MUG.id, ["retrievals", "successes"]].tolist() == [8, 4]
    assert coevo.bank("first@0", workspace=directory).columns.tolist() == latest.columns.tolist()


def test_runs_and_their_figures_are_frames(directory, monkeypatch):
    monkeypatch.setenv("COEVO_WORKSPACE", str(directory))
    assert coevo.runs().loc["first", "final_success"] == 1.0
    figures = coevo.log("first")
    assert figures.index.tolist() == [0, 1, 2, 3]
    assert figures["agent/success/seen-houses"].dropna().tolist() == [0.0, 0.5, 1.0]
    assert coevo.log("first@1").index.tolist() == [0, 1]


def test_a_comparison_is_a_frame(directory):
    rows = coevo.compare("other", "first", workspace=directory).to_dict("records")
    (row,) = (row for row in rows if row["equal"] == "end")
    assert (row["run"], row["against"], row["difference"], row["tasks"]) == ("first@3", "other@3", 0.5, 4)
    assert row["low"] < 0.5 < row["high"]


def test_a_mistake_is_the_line_that_the_command_prints(directory):
    with pytest.raises(coevo.CoevoError, match="No run 'nobody'"):
        coevo.bank("nobody", workspace=directory)
    with pytest.raises(coevo.CoevoError, match="iterations"):
        coevo.run("homerules-grpo", {"iterations": -1}, workspace=directory)


def test_overrides_are_values(directory, monkeypatch):
    seen = []

    def start(config, *_):
        seen.append(config)
        return SimpleNamespace(run="mine")

    monkeypatch.setattr("coevo.flows.start_run.start_run", start)
    coevo.run("homerules-coevo-rl", {"seed": 11, "evaluation.panels": ["no-bank"], "bank": None}, workspace=directory)
    assert (seen[0].seed, seen[0].evaluation.panels, seen[0].bank) == (11, ("no-bank",), None)


def test_an_environment_is_known_by_its_name_once_it_is_added(monkeypatch):
    monkeypatch.setattr(registry, "_ADDED", {})

    @coevo.add_environment
    class Coins(coevo.Environment):
        """Heads or tails."""

        name, version, panels = "coins", "1", {"held-out": "later throws"}

        def sample(self, count, key):
            return [coevo.Task("coins", "throw", f"throw {n}", "", "train", {"n": n}) for n in range(count)]

        def panel(self, name, size):
            return coevo.Panel(name, self.version, ())

        def start(self, task):
            return task, "at table"

        def step(self, states, actions):
            return [coevo.Step(state, "at table", "heads", 1.0, True, True) for state in states]

    assert registry.find("coins") is Coins
    assert "coins" in registry.available()
    with pytest.raises(coevo.CoevoError, match="already registered"):
        coevo.add_environment(type("Other", (Coins,), {"name": "homerules"}))
    with pytest.raises(coevo.CoevoError, match="it lacks"):
        coevo.add_environment(type("Half", (coevo.Environment,), {"name": "half"}))


def test_the_frames_can_be_written(directory, tmp_path):
    coevo.bank("first", workspace=directory).to_parquet(tmp_path / "bank.parquet")
    assert json.loads(coevo.bank("first", workspace=directory).to_json())["scope"][small_run.MUG.id] == "lotus"
