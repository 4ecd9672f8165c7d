"""A decided study: what was frozen before its first run, the blocks that it opens, and notes of what came later."""

import json
import subprocess

import pytest
from support import small_run

from coevo.configs.load.load_study import stored_study
from coevo.flows.studies import study_runs
from coevo.flows.studies.kept_study import KeptStudy, next_block
from coevo.flows.studies.outcome import outcome
from coevo.lineage.git import commit_of
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError
from tests.flows.studies.conftest import SETTINGS


@pytest.fixture(autouse=True)
def _other_worlds(monkeypatch):
    """No test reads a reserved world."""
    monkeypatch.setattr(study_runs, "RESERVED", range(40, 100_040))


def described(**changes):
    return stored_study(SETTINGS | changes, "test")


def add(kept, workspace, runs):
    """Finish the first runs that are left, with results that depend on the arm alone."""
    for each in [run for run in kept.runs if run.name not in kept.outcomes()][:runs]:
        k = 1 if each.arm.name == "few" else 4
        settings = ["iterations=3", f"bank.retrieval.k={k}", f"seed={each.seed}", f"env.world={each.seed}"]
        end = {"few": "1110", "many": "1000"}[each.arm.name]
        small_run.build(workspace.root, each.name, settings, ("0000", None, "1000", end))
        kept.add(outcome(kept.study, each, workspace))


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def test_results_land_as_they_come_and_are_not_played_again(workspace, folder):
    kept = KeptStudy.begun(described(), folder)
    assert [(run.name, run.seed, run.config.env.world) for run in kept.runs] == [
        ("few-few-w40", 40, 40), ("few-many-w40", 40, 40), ("few-few-w41", 41, 41), ("few-many-w41", 41, 41),
    ]  # fmt: skip
    add(kept, workspace, 3)
    document = json.loads((folder / "few.json").read_text())
    assert document["summary"].startswith("3 of 4 runs are finished")
    assert (document["block"], document["standing"], document["earlier"]) == (0, "undecided", [])
    assert document["notes"] == ["the design was not committed before its first run"]
    assert set(document["runs"][0]["measured_on"]) >= {"code", "cores", "machine", "python", "torch"}
    assert [point[0] for point in document["runs"][0]["curve"]] == [0, 2, 3]

    again = KeptStudy.begun(described(), folder)
    assert again.outcomes() == kept.outcomes()
    assert again.result().rows == kept.result().rows == KeptStudy.of(described(), folder).result().rows


def test_settings_that_changed_after_a_look_open_the_next_block_and_both_results_stay(workspace, folder):
    add(KeptStudy.begun(described(), folder), workspace, 2)
    other = KeptStudy.begun(described(name="other"), folder)
    assert other.document["block"] == 1
    changed = KeptStudy.begun(described(settings=["iterations=3", "rollout.tasks=8"]), folder)
    assert (changed.document["block"], changed.outcomes()) == (2, {})
    (earlier,) = changed.document["earlier"]
    assert (earlier["block"], len(earlier["runs"])) == (0, 2)
    assert earlier["replaced"] == (
        "replaced at an uncommitted state, after 2 runs: arm few has other settings; arm many has other settings"
    )
    assert next_block(folder) == 3


def test_settings_that_change_before_the_first_run_open_no_block(folder):
    KeptStudy.begun(described(), folder)
    changed = KeptStudy.begun(described(settings=["iterations=3", "rollout.tasks=8"]), folder)
    assert (changed.document["block"], changed.document["earlier"]) == (0, [])


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"seeds": 3}, "3 worlds instead of 2"),
        ({"finding": "Many are better."}, "finding, metrics or expectations changed"),
    ],
)
def test_worlds_and_claims_that_change_after_a_look_are_noted_by_the_runner(workspace, folder, change, note):
    add(KeptStudy.begun(described(), folder), workspace, 4)
    for _ in range(2):
        changed = KeptStudy.begun(described(**change), folder)
        assert changed.document["notes"][1:] == [f"after 4 runs had been seen, at an uncommitted state: {note}"]
    assert len(changed.outcomes()) == 4


def test_fewer_worlds_after_a_look_are_another_design(workspace, folder):
    add(KeptStudy.begun(described(), folder), workspace, 4)
    fewer = KeptStudy.begun(described(seeds=1), folder)
    assert (fewer.document["block"], fewer.outcomes(), len(fewer.document["earlier"])) == (1, {}, 1)


def test_another_metric_is_another_design(workspace, folder):
    add(KeptStudy.begun(described(), folder), workspace, 2)
    assert KeptStudy.begun(described(metrics=[{"name": "bank/size"}]), folder).document["block"] == 1


def test_a_result_of_before_there_were_blocks_stays_as_an_earlier_one(folder):
    folder.mkdir()
    (folder / "few.json").write_text(json.dumps({"study": SETTINGS, "summary": "", "rows": [], "runs": [{}]}))
    kept = KeptStudy.begun(described(), folder)
    assert kept.document["earlier"][0]["replaced"].endswith("it was not played in reserved worlds")


def test_what_is_not_kept_or_is_of_another_design_is_not_shown(workspace, folder):
    with pytest.raises(CoevoError, match="has no result of this study as it is"):
        KeptStudy.of(described(), folder)
    add(KeptStudy.begun(described(), folder), workspace, 2)
    with pytest.raises(CoevoError, match="has no result of this study as it is"):
        KeptStudy.of(described(seeds=3), folder)
    (folder / "few.json").write_text("[")
    with pytest.raises(CoevoError, match="is no kept result of a study"):
        KeptStudy.begun(described(), folder)


def test_the_commit_of_a_file_is_that_of_its_last_change(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("1")
    assert commit_of(path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for command in (["init", "--quiet"], ["add", "mine.yaml"], ["commit", "--quiet", "-m", "mine"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert head.startswith(commit_of(path))
    path.write_text("2")
    assert commit_of(path) is None


def test_blocks_do_not_overlap_and_their_worlds_are_reserved():
    assert not {*study_runs.worlds(0, 100)} & {*study_runs.worlds(1, 100)}
    assert study_runs.worlds(0, 100)[0] == 40 and study_runs.worlds(999, 100)[-1] == 100_039
    with pytest.raises(CoevoError, match="ask for 100 seeds at most"):
        study_runs.worlds(0, 101)
    with pytest.raises(CoevoError, match="all 1000 blocks of reserved worlds are open"):
        study_runs.worlds(1000, 1)
