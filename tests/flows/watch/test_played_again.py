"""A task stands with and without the bank side by side once an evaluation has played it, whatever panels a run has."""

import re
import stat
from dataclasses import replace
from shutil import rmtree

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from support import small_run
from support.watched import TOKEN, indexed

from coevo.flows.history import stored_episodes
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.stored_episodes import PARQUET, keep_played
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.workspace import Workspace

TASK = small_run.TASK.id


@pytest.fixture
def run(tmp_path):
    indexed(small_run.build(tmp_path))
    return Workspace(tmp_path)


def sides(workspace, revision):
    """Titles of the two sides of a task, and whether the page names a command."""
    asked = TestClient(watch_app(WatchSite(workspace, TOKEN)), base_url="http://127.0.0.1")
    page = asked.get(f"/runs/first/r/{revision}/tasks/{TASK}").text
    return re.findall(r"<h3>([^<]*)</h3>", page), "coevo evaluate first@" in page, page


def keep(workspace, reference, side, episodes, panel="seen-houses"):
    with reading(reference, workspace) as opened:
        keep_played(opened, panel, side, episodes)


def test_an_evaluation_puts_the_other_side_beside(run):
    assert sides(run, 2)[:2] == (["With lessons in the prompt: 2 of 4 solved"], True)
    keep(run, "first@2", "bank none", small_run.episodes(2)[1:3])
    keep(run, "first@2", "bank none", small_run.episodes(2)[1:3])  # an equal one replaces it
    keep(run, "first@2", "bank <b>", small_run.episodes(2, (small_run.MUG,))[:1])
    titles, names_command, page = sides(run, 2)
    assert titles == ["With lessons in the prompt: 3 of 5 solved", "Without: 1 of 2 solved"]
    assert not names_command
    assert page.count("seen-houses, bank none") == 2
    assert "bank &lt;b&gt;" in page
    assert sides(run, 3)[1]  # another revision has its own


def test_a_smaller_evaluation_takes_nothing_away_and_runs_that_are_gone_leave_nothing(run):
    small_run.build(run.root, "gone")
    (gone,) = [paths for paths in run.runs() if paths.name == "gone"]
    played = small_run.episodes(2)
    keep(run, "gone@2", "bank none", played)
    rmtree(gone.root)
    other = replace(played[0], task=replace(played[0].task, instruction="another"))
    keep(run, "first@2", "bank none", [*played, other])
    keep(run, "first@2", "bank none", played)
    (file,) = run.root.rglob(f"played/*/*/{PARQUET}")
    assert pq.read_table(file).num_rows == len(played) + 1
    assert stat.S_IMODE((run.root / "watch").stat().st_mode) == 0o700


@pytest.mark.parametrize("harm", [b"", b"no table" * 100])
def test_what_is_damaged_or_deleted_is_left_out(run, harm):
    keep(run, "first@2", "bank none", small_run.episodes(2))
    (file,) = run.root.rglob(f"played/*/*/{PARQUET}")
    file.write_bytes(harm)
    assert len(sides(run, 2)[0]) == 1
    rmtree(file.parent)
    assert len(sides(run, 2)[0]) == 1


def test_the_latest_evaluations_are_kept_and_a_run_of_the_same_name_has_none(run, monkeypatch):
    monkeypatch.setattr(stored_episodes, "MAX_PLAYED", 2)
    for number in range(4):
        keep(run, "first@2", f"bank {number}", small_run.episodes(2))
    assert len(list(run.root.rglob(f"played/*/*/{PARQUET}"))) == 2
    paths = run.existing("first")
    paths.created.write_text(f"{paths.moment + 1}\n")
    indexed(paths)
    assert sides(run, 2)[1]
