"""Evaluating a committed revision: the run's own figures again, other banks, types of tasks, several attempts."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.sessions import iterate, opened
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.flows import api
from coevo.flows.cli.app import main
from coevo.flows.evaluation import evaluate_revision as module
from coevo.flows.evaluation.evaluate_revision import evaluate_revision
from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

PANEL = "seen-houses"
SETTINGS = [
    "warmstart=null", "rollout.tasks=4", "rollout.group_size=2", "evaluation.tasks=24", "evaluation.every=1",
    "evaluation.final_panels=[]", "evaluation.discovery=3",
]  # fmt: skip


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run of one iteration, and its last manifest; its policy is the environment's expert."""
    root = tmp_path_factory.mktemp("evaluated")
    with opened(root, load_recipe("homerules-reflexion-style", SETTINGS), played=expert_worker()) as session:
        iterate(session)
        return Workspace(root), session.stores.lineage.history.head()


@pytest.fixture(autouse=True)
def plays_as_the_expert(monkeypatch):
    monkeypatch.setattr(module, "open_engine", lambda *_, **__: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(module, "worker_with", lambda *_: expert_worker())


def test_the_run_s_own_attempts_come_out_again(evaluated):
    directory, manifest = evaluated
    found = evaluate_revision("run", EvaluationRequest(PANEL, discovery=3), directory)
    metrics = manifest.state["metrics"]
    assert found.success == metrics[f"agent/success/{PANEL}"]
    assert found.discovery == {number: metrics[f"bank/discovery/{PANEL}/{number}"] for number in (1, 2, 3)}
    assert found.discovery[3] > found.discovery[1]
    assert found.vendi == {side: metrics[f"agent/vendi/{PANEL}/{side}"] for side in ("failures", "successes")}


@pytest.fixture(scope="module")
def seldom(tmp_path_factory):
    """A run of which revisions 0 and 2 are evaluated, 1 and 3 are not."""
    root = tmp_path_factory.mktemp("seldom")
    settings = [*SETTINGS, "evaluation.every=2", "evaluation.discovery=0"]
    with opened(root, load_recipe("homerules-reflexion-style", settings), played=expert_worker()) as session:
        for _ in range(3):
            iterate(session)
    return Workspace(root)


@pytest.mark.parametrize(("one", "other"), [("run@1", "run@3"), ("run@2", "run@3"), ("run@2", "run")])
def test_compare_evaluates_what_was_not(seldom, one, other):
    with pytest.raises(CoevoError, match="was not evaluated") if other != "run" else nullcontext():
        api.compare(one, other, workspace=seldom.root)
    found = api.compare(one, other, evaluate=True, workspace=seldom.root).set_index("equal").loc["end"]
    ours, theirs = (evaluate_revision(name, EvaluationRequest(PANEL), seldom) for name in (other, one))
    assert (found["run"], found["against"]) == ("run@3", one)
    assert (found["success"], found["against_success"]) == (ours.success, theirs.success)
    assert (found["revision"], found["against_revision"], found["tasks"]) == (3, int(one[-1]), 24)


def test_types_of_tasks_add_up_to_all(evaluated):
    directory, _ = evaluated
    found = evaluate_revision("run", EvaluationRequest(PANEL), directory)
    kinds = found.by_kind()
    assert len(kinds) > 1
    assert all({episode.task.kind for episode in part.episodes} == {kind} for kind, part in kinds.items())
    assert sum(part.success * len(part.episodes) for part in kinds.values()) == pytest.approx(found.success * 24)


@pytest.mark.parametrize("bank", ["none", "run@0"])
def test_attempts_with_another_bank_begin_with_that(evaluated, bank):
    directory, _ = evaluated
    blind = evaluate_revision("run", EvaluationRequest(PANEL, bank="none"), directory)
    found = evaluate_revision("run", EvaluationRequest(PANEL, bank=bank, discovery=2), directory)
    assert found.discovery[1] == pytest.approx(found.success)
    assert found.success == blind.success
    assert found.discovery[2] > found.discovery[1]


def test_random_entries_and_several_attempts_do_not_go_together(evaluated):
    with pytest.raises(CoevoError, match="choose another bank"):
        evaluate_revision("run", EvaluationRequest(PANEL, bank="random", discovery=2), evaluated[0])


def test_attempts_learn_without_the_replays_of_the_run_s_admission(small_workspace):
    found = evaluate_revision("first", EvaluationRequest(discovery=2), Workspace(small_workspace))
    assert found.panel.name == PANEL
    assert found.discovery[2] > found.discovery[1]


def test_the_table_fits_eighty_columns_and_breaks_no_word(evaluated, tmp_path, coevo, eighty_columns):
    shutil.copytree(evaluated[0].root, tmp_path / "copy")
    (tmp_path / "copy/runs/run").rename(tmp_path / "copy/runs/homerules-coevo-rl-123")
    shown = coevo(
        "evaluate", "homerules-coevo-rl-123@1", "--tasks", "8", "--bank", "random", "--workspace", tmp_path / "copy"
    ).out
    assert max(map(len, shown.splitlines())) <= 80
    assert {"homerules-coevo-rl-123@1", PANEL, "random"} <= set(shown.splitlines()[1].split())


def test_the_command_shows_types_and_attempts(evaluated, capsys):
    arguments = ["evaluate", "run", "--tasks", "8", "--discovery", "2", "--workspace", str(evaluated[0].root)]
    shown = []
    for form in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *form])
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    found = json.loads(shown[1])
    assert sum(each["tasks"] for each in found["types"]) == found["tasks"] == 8
    assert list(found["discovery"]) == ["1", "2"]
    assert all(each["type"] in shown[0] for each in found["types"])
    assert "attempts  solved" in shown[0]
    assert set(found["vendi"]) == {"successes", "failures"}
    assert "trajectories  vendi" in shown[0]


def test_progress_is_on_standard_error_and_the_document_alone(evaluated, monkeypatch, capsys):
    monkeypatch.setattr("coevo.flows.console.progress.REVISION_REPORT_INTERVAL_S", 0.0)
    with pytest.raises(SystemExit):
        main(["evaluate", "run", "--tasks", "8", "--workspace", str(evaluated[0].root), "--json"])
    done = capsys.readouterr()
    assert json.loads(done.out)["tasks"] == 8
    assert "r1 evaluate: 8 of 8 episodes are over, " in done.err


def test_a_type_whose_episodes_are_all_lost_has_no_success(evaluated, monkeypatch, capsys):
    workspace, _ = evaluated
    result = evaluate_revision("run", EvaluationRequest(PANEL), workspace)
    gone = sorted(result.by_kind())[0]
    lost = [replace(e, lost="exception: gone", success=False) if e.task.kind == gone else e for e in result.episodes]
    monkeypatch.setattr(module, "evaluate_revision", lambda *_: replace(result, episodes=lost))
    shown = []
    for form in ([], ["--json"]):
        with pytest.raises(SystemExit):
            main(["evaluate", "run", "--workspace", str(workspace.root), *form])
        shown.append(capsys.readouterr().out)
    first, *others = json.loads(shown[1])["types"]
    assert (first["type"], first["success"], first["stderr"], first["lost"]) == (gone, None, None, first["tasks"])
    assert all(each["success"] is not None and each["lost"] == 0 for each in others)
    assert [gone, str(first["tasks"]), str(first["tasks"])] in [line.split() for line in shown[0].splitlines()]
