"""Going back is a new revision; everything of the old one is there again, and forward is the same command."""

import json
import re
import signal
import subprocess

import pytest
from mlflow import MlflowClient
from support.fsck import fsck
from support.kept import recovered, whole
from support.runs import coevo as run
from support.small_run import EDITED, HEAT, MICROWAVE, MUG, SAFE

import coevo as public
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace


def strategies(coevo):
    return {row["strategy"] for row in json.loads(coevo("bank", "show", "first", "--json").out)}


def test_rollback_restores_policy_and_bank_as_a_new_revision(coevo, refused, copied):
    coevo("tag", "first@1", "good")
    with writer_lock(Workspace(copied).existing("first")):
        assert "in use" in refused("rollback", "first", "--to", 1)
    result = coevo("rollback", "first", "--to", "good")  # a tag stands for its revision
    assert result.code == 0
    assert "Rolled back to revision 1; recorded as first@4 (iteration 1, policy, 2 entries)" in result.out
    assert result.out.splitlines()[-1] == f"Continue with: coevo resume first --workspace {copied}"
    assert (copied / "runs/first/lineage/policy/weights").read_text() == "policy of 1"
    assert strategies(coevo) == {SAFE, HEAT}
    last = json.loads(coevo("log", "first", "--json").out)[-1]
    assert (last["revision"], last["restored_from"], last["what"]) == (4, 1, "restored from 1")
    coevo("rollback", "first", "--to", 3)  # forward again is the same command
    assert (copied / "runs/first/lineage/policy/weights").read_text() == "policy of 3"
    assert strategies(coevo) == {EDITED.strategy, HEAT}
    assert json.loads(coevo("runs", "--json").out)[0]["final_success"] == 1.0


def test_figures_follow_what_was_restored_not_what_was_left_behind(coevo, copied):
    entry = json.loads(coevo("bank", "show", "first@2", "--json").out)[1]["id"]
    before = json.loads(coevo("bank", "why", "first@2", entry, "--json").out)
    coevo("rollback", "first", "--to", 2)
    row = json.loads(coevo("runs", "--json").out)[0]
    assert (row["revision"], row["iteration"], row["final_success"], row["seconds"]) == (4, 2, 0.5, 8.0)
    document = json.loads(coevo("compare", "first", "other", "--json").out)
    assert (document["runs"][0]["evaluated"], document["runs"][0]["success"]) == (4, {"seen-houses": 0.5})
    assert 3 not in {each["against_revision"] for each in document["differences"]}
    assert json.loads(coevo("bank", "why", "first", entry, "--json").out) == before  # its episodes count once


def test_a_rollback_to_a_revision_that_was_not_evaluated_has_no_success_of_another_one(coevo, copied):
    coevo("rollback", "first", "--to", 1)
    row = json.loads(coevo("runs", "--json").out)[0]
    assert (row["revision"], row["start_success"], row["final_success"], row["evaluated"]) == (4, 0.0, None, None)
    document = json.loads(coevo("compare", "first", "other", "--json").out)
    assert document["runs"][0] == {"run": "first@4", "evaluated": None, "success": {}, "spent": None}
    assert [each for each in document["differences"] if each["equal"] == "end"] == []
    assert public.runs().loc["first"].isna()["final_success"]
    report = coevo("report", "first", "--output", copied / "report.html")
    assert report.code == 0, report.err
    assert "success on seen-houses" not in (copied / "report.html").read_text()


def test_a_cursor_that_is_wrong_is_one_line_with_its_remedy_and_changes_nothing(coevo, refused, copied):
    path = copied / "runs/first/published.json"
    for text in ('{"published": 9}', '{"published": 1e400}', ""):
        path.write_text(text)
        for command in ("rollback first --to 1", "gc --keep-last 1", "gc --keep-last 1 --apply"):
            result = refused(*command.split())
            assert result.startswith(f"coevo: {path} "), command
            assert result.endswith(": repair it with `coevo fsck first --repair`\n")
        assert path.read_text() == text
    assert [row["kept"] for row in json.loads(coevo("log", "first", "--json").out)] == [True] * 4


@pytest.mark.full
def test_mlflow_learns_of_it_at_once(coevo, copied, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    coevo("rollback", "first", "--to", 1)
    coevo("rollback", "first", "--to", 3)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("homerules").experiment_id
    (run,) = client.search_runs([experiment], "tags.`coevo.run` = 'first'")
    assert (run.info.status, run.data.tags["coevo.revision"]) == ("KILLED", "5")
    assert [point.step for point in client.get_metric_history(run.info.run_id, "agent/success/seen-houses")] == [5]


@pytest.mark.full
def test_where_mlflow_cannot_be_reached_one_line_says_so_and_the_cursor_stays(coevo, copied, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    result = coevo("rollback", "first", "--to", 1)
    assert (result.code, result.err.count("\n")) == (0, 1), result.err[:3000]
    assert re.fullmatch(r"coevo: not published: MLflow at \S+ .*; `coevo resume` publishes the rest\n", result.err)
    assert "Rolled back to revision 1; recorded as first@4" in result.out.splitlines()[0]
    assert Cursor(copied / "runs/first/published.json").read() == 3


def revisions(coevo):
    return [row["what"] for row in json.loads(coevo("log", "first", "--json").out)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("kill", "made"),
    [
        ("coevo.lineage.repository:Repository.commit@1", 0),
        ("coevo.lineage.repository:Repository.commit@1+", 1),
        ("coevo.flows.upkeep.branch:publish_if_quick@1", 1),
    ],
)
def test_a_rollback_that_was_killed_and_is_repeated_acts_once(coevo, copied, kill, made):
    killed = run("rollback", "first", "--to", "1", workspace=copied, kill=kill)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(revisions(coevo)) == 4 + made
    result = coevo("rollback", "first", "--to", 1)
    again = "Already rolled back to revision 1;" if made else "Rolled back to revision 1;"
    assert (result.code, f"{again} recorded as first@4" in result.out) == (0, True)
    assert revisions(coevo)[4:] == ["restored from 1"]
    assert strategies(coevo) == {SAFE, HEAT}
    assert whole(copied, "first", 4) == whole(copied, "first", 1)


@pytest.mark.full
def test_back_and_forward_gives_all_of_each_revision_and_a_repetition_is_known_by_what_it_would_make(coevo, copied):
    expected = [whole(copied, "first", revision) for revision in range(4)]
    made = [*range(4)]
    for to, known in ((1, False), (1, True), (4, False), (4, True), (1, False), (3, False), (1, False)):
        assert ("Already rolled back" in coevo("rollback", "first", "--to", to).out) == known, to
        made += [] if known else [made[to]]
    assert len(revisions(coevo)) == len(made) == 4 + 5
    assert [whole(copied, "first", revision) for revision in range(9)] == [expected[origin] for origin in made]
    assert recovered(copied, "first").restored_from == 1


@pytest.mark.parametrize(
    "command",
    [
        *(("rollback", "first", "--to", to) for to in ("0", "1", "2")),
        *(("bank", "retire", "first", entry.id, "--reason", "old") for entry in (MUG, MICROWAVE)),
    ],
    ids=" ".join,
)
def test_a_revision_that_a_kill_left_without_its_tag_gets_it_from_the_next_command(coevo, copied, command):
    """Its commit is done, so the revision is there: nothing may call it damaged, and gc may not stop at it."""
    git = ["git", "-C", copied / "runs/first/lineage"]
    subprocess.run([*git, "update-ref", "-d", "refs/tags/r3"], check=True)
    done = coevo(*command)
    assert done.code == 0, done.err
    tags = subprocess.run([*git, "tag"], capture_output=True, text=True, check=True).stdout.split()
    assert {"r0", "r1", "r2", "r3"} <= set(tags)
    assert not [found for found in fsck(copied, "first") if "tag" in found.problem]
