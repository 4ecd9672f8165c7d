"""The benchmark of retirement on few iterations: its arms, its truth and its figures."""

from benchmarks.bench import Bench
from benchmarks.learning import retirement_power
from benchmarks.learning.retirement_power import growth, last_third, truth
from coevo.configs.load.load import load_recipe
from coevo.lineage.workspace import Workspace


def test_the_facts_in_force_are_those_of_all_houses_and_change_one_house_at_a_time():
    config = load_recipe(retirement_power.RECIPE, ["env.drift=50"])
    before, after = truth(config, 50), truth(config, 51)
    assert len(before) == len(after) == 16 * 13
    assert len(before - after) == 13
    assert {lesson.split()[0] for lesson in before - after} == {"lotus"}


def test_figures_are_of_the_last_third_and_its_halves():
    cell = {"active": [0.0, 0, 0, 0, 1, 3]}
    assert last_third(cell, "active") == 2
    assert growth(cell) == 2


def test_every_arm_plays_and_the_control_has_the_size_of_the_retiring_bank(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(retirement_power, "BLOCK", 1)
    brief = ("rollout.tasks=4", "rollout.group_size=4", "bank.admission.replays=4", "bank.admission.confidence=null")
    monkeypatch.setattr(retirement_power, "SETTINGS", ("warmstart=null", "env.drift=2", *brief))
    bench = Bench(tmp_path / "results", Workspace(tmp_path / "workspace"))
    cells = retirement_power.measure(bench, [1, 2], 6)
    assert [len(found) for found in cells.values()] == [2, 2, 2]
    for kept, retired, drawn in zip(*cells.values(), strict=True):
        assert kept["success"][0] == retired["success"][0] == drawn["success"][0]
        assert sum(kept["retired"]) == 0
        assert drawn["setting"] == retirement_power.control(retired)
        assert max(drawn["active"]) <= round(last_third(retired, "active"))
    retirement_power.report(cells)
    assert "random" in capsys.readouterr().out
    assert retirement_power.measure(bench, [1, 2], 6) == cells
