"""``coevo ablate`` lists studies, checks arms, and shows the result of the runs that are there."""

import json
import subprocess
import sys

import pytest
from support import small_run

from coevo.configs.load.load_study import load_studies
from coevo.flows.cli.studies.ablate import kept_standings

MINE = f"""
paper: a guess
finding: Few entries are better than many.
recipe: {small_run.RECIPE}
settings: [iterations=3]
arms:
  - {{name: few, settings: [bank.retrieval.k=1]}}
  - {{name: many, expected: worse, settings: [bank.retrieval.k=4]}}
seeds: 2
metrics:
  - {{name: agent/success/seen-houses}}
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return str(path)


def test_the_list_has_every_study_with_its_size_or_what_it_needs(coevo):
    rows = {row["name"]: row for row in json.loads(coevo("ablate", "--list", "--json").out)}
    assert list(rows) == [study.name for study in load_studies()]
    frozen = rows["jerp-frozen-rules"]
    assert (frozen["paper"], frozen["figure"], frozen["arms"], frozen["seeds"]) == ("JERP", "Fig. 3", 2, 5)
    assert frozen["episodes"] == 40 * 16 * 8 * 2 * 5
    assert rows["webshop-rules"]["episodes"] is None
    assert rows["webshop-rules"]["needs"].startswith("a pretrained policy: coevo ablate jerp-table-ii-webshop")
    assert all((row["episodes"] is None) == (row["needs"] is not None) for row in rows.values())


def test_the_list_has_hours_and_results_in_80_columns(coevo):
    *rows, total = coevo("ablate", "--list").out.splitlines()
    assert max(map(len, rows)) <= 80
    found = {row.split()[0]: row.split(maxsplit=4)[1:] for row in rows}
    assert found["slea-rl-retrieval"][:2] == ["2", "5"]
    assert float(found["slea-rl-retrieval"][2]) > 0
    assert found["slea-rl-retrieval"][3].strip() == kept_standings()["slea-rl-retrieval"]
    assert found["webshop-rules"] == ["cannot", "run"]
    assert all(study.minutes for study in load_studies() if not study.needs)
    assert "hours on two quiet cores" in total


def test_a_model_goes_with_the_table_of_a_paper(refused):
    said = refused("ablate", "jerp-frozen-rules", "--model", "scratch")
    assert "--model goes with a paper's table" in said
    assert "retroagent-table-1-minesweeper" in said
    unfit = refused("ablate", "retroagent-table-1-minesweeper", "--model", "scratch", "--dry-run")
    assert "bank.writer.reveal_outcome: no such key of quote-reflection" in unfit


def test_a_study_is_decided_as_its_file_has_it(refused, tmp_path):
    said = refused("ablate", "jerp-frozen-rules", "iterations=3", "--keep", tmp_path / "kept")
    assert "--keep decides a study as its file has it" in said
    assert "has no result of this study" in refused(
        "ablate", "jerp-frozen-rules", "--show", "--keep", tmp_path / "kept"
    )
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cluster", "auto"), "--cluster and --remote go together"),
        (("--remote", "there"), "--cluster and --remote go together"),
        (("--cluster", "auto", "--remote", "there", "--pool", "night"), "leave --pool and --keep out"),
        (("--cluster", "auto", "--remote", "there"), "no Ray cluster of"),
        (("--cluster", "127.0.0.1:1", "--remote", "there"), "or correct --cluster"),
        (("--cluster", "127.0.0.1", "--remote", "there"), "HOST:PORT"),
    ],
)
def test_nodes_of_a_cluster_that_cannot_play_are_one_line(refused, mine, tmp_path, monkeypatch, options, said):
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert said in refused("ablate", mine, *options, "--workspace", tmp_path / "w")


@pytest.mark.parametrize("option", [("--cpus", "1"), ("--gpus", "0")])
def test_options_of_nodes_without_a_cluster_are_refused(refused, mine, option):
    assert "give --cluster, or leave them out" in refused("ablate", mine, *option)


@pytest.mark.parametrize("option", ["--list", "--dry-run", "--show"])
def test_a_cluster_that_would_play_nothing_is_refused(refused, mine, option):
    said = refused("ablate", mine, "--cluster", "auto", "--remote", "there", option)
    assert "--list, --dry-run and --show play nothing" in said


def test_the_list_loads_no_large_library():
    code = "import sys; from coevo.flows.cli.app import main; main(['ablate', '--list']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *rows, loaded = done.stdout.splitlines()
    assert any(row.startswith("jerp-frozen-rules") for row in rows)
    assert not {"torch", "transformers", "prefect", "mlflow", "deepspeed", "minigrid", "lancedb"} & set(loaded.split())


def test_a_dry_run_checks_every_arm_and_writes_nothing(coevo, mine, tmp_path):
    done = coevo("ablate", mine, "rollout.tasks=3", "--dry-run", "--workspace", tmp_path / "none")
    assert (done.code, done.err) == (0, "")
    assert "every arm is possible: 4 runs, 288 episodes, about " in done.out
    assert not (tmp_path / "none").exists()
    document = json.loads(coevo("ablate", mine, "--dry-run", "--json", "--seeds", 1).out)
    assert document["runs"] == ["mine-few-s1", "mine-many-s1"]
    assert [arm["expected"] for arm in document["arms"]] == ["reference", "worse"]
    assert all(arm["hours"] > 0 for arm in document["arms"])


def test_a_grid_of_the_command_line_is_a_study(coevo):
    arguments = ("ablate", "--recipe", small_run.RECIPE, "--grid", "bank.every=5,20", "iterations=30", "--seeds", 2)
    document = json.loads(coevo(*arguments, "--dry-run", "--json").out)
    assert document["runs"][:2] == ["homerules-coevo-rl-every-every-5-s1", "homerules-coevo-rl-every-every-20-s1"]
    assert document["arms"][0]["iterations"] == 30


def test_the_result_of_finished_runs_is_shown_with_the_verdict(coevo, mine, tmp_path):
    for seed, right in ((1, 30), (2, 31)):  # of 40, against 10
        for arm, k, end in (("few", 1, f"{'1' * 10:0<40}"), ("many", 4, f"{'1' * right:0<40}")):
            overrides = ["iterations=3", f"bank.retrieval.k={k}", f"seed={seed}"]
            small_run.build(tmp_path / "w", f"mine-{arm}-s{seed}", overrides, ("0000", None, "1000", end))
    said = coevo("ablate", mine, "--show", "--workspace", tmp_path / "w").out
    assert "+0.512" in said
    assert "reversed" in said
    assert said.splitlines()[-1] == "4 of 4 runs are finished; comparisons: 1 reversed"
    rows = json.loads(coevo("ablate", mine, "--show", "--json", "--workspace", tmp_path / "w").out)["rows"]
    assert [(row["arm"], row["verdict"]) for row in rows] == [("few", None), ("many", "reversed")]
    part = coevo("ablate", mine, "--show", "--seeds", 3, "--workspace", tmp_path / "w").out
    assert part.splitlines()[-1].startswith("4 of 6 runs are finished")


def test_what_cannot_be_played_is_refused_in_one_line(refused, mine):
    assert "needs a pretrained policy" in refused("ablate", "retroagent-harder-boards")
    assert "name a study" in refused("ablate")
    assert "go together" in refused("ablate", mine, "--grid", "bank.every=5,20")
    assert "No study 'jerp'" in refused("ablate", "jerp")
    assert "mine, arm few: " in refused("ablate", mine, "--dry-run", "bank.every=0")
    assert "at most 40 characters" in refused("ablate", mine, "--dry-run", "--name", "x" * 41)
