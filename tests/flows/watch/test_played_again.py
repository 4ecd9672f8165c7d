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

from coevo.flows.history import played_episodes
from coevo.flows.history.played_episodes import keep_played, without_side
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.stored_episodes import PARQUET
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.workspace import Workspace
from coevo.records.intervals import paired_success

TASK_OF, TASK = small_run.TASK, small_run.TASK.id


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


def test_equal_plays_count_once_and_each_card_leads_to_its_episode(run):
    read = small_run.episodes(2, (small_run.MUG,))
    for side in ("bank own", "without lesson a", "without lesson b"):
        keep(run, "first@2", side, read[:3])
    keep(run, "first@2", "bank own", read[:3], "another panel on the same draws")
    changed = [replace(read[0], success=False)]
    keep(run, "first@2", "without lesson c", changed)
    titles, _, page = sides(run, 2)
    assert titles == ["With lessons in the prompt: 4 of 8 solved"]  # four of training, three and one of evaluations
    others = ("bank own", "without lesson a", "without lesson b")
    assert page.count(f"the same again: {'; '.join(f'seen-houses, {side}' for side in others)}") == 3
    cards = re.findall(r'<h4><a href="[./]*(/runs/first/r/2/[^"]*)"', page)
    assert len(cards) == 8
    asked = TestClient(watch_app(WatchSite(run, TOKEN)), base_url="http://127.0.0.1")
    for address in cards:
        answer = asked.get(address)
        assert (answer.status_code, "go safe" in answer.text, "lotus mug in" in answer.text) == (200, True, True)
    played = next(address for address in cards if "played-" in address).rpartition("/")[0]
    for path in (f"{played}/99", played.replace("r/2", "r/1") + "/0", "/runs/first/r/2/played-../0"):
        assert asked.get(path).status_code == 404, path


def test_results_of_a_test_of_a_lesson_stand_on_its_card_newest_first(run):
    asked = TestClient(watch_app(WatchSite(run, TOKEN)), base_url="http://127.0.0.1")
    address = f"/runs/first/lessons/{small_run.MUG.id}"
    command = f"coevo bank test first@3 {small_run.MUG.id}"
    assert command in asked.get(address).text
    tasks = [replace(TASK_OF, data={"n": number}) for number in range(4)]
    read, bare = small_run.episodes(2, (small_run.MUG,)), small_run.episodes(2)
    ours = [replace(each, task=task, success=True) for each, task in zip(read, tasks, strict=True)]
    theirs = [replace(each, task=task, success=task is tasks[0]) for each, task in zip(bare, tasks, strict=True)]
    for panel in ("seen-houses", "other"):
        keep(run, "first@2", "bank own", ours, panel)
        keep(run, "first@2", without_side((small_run.MUG.id,)), theirs, panel)
    keep(run, "first@2", without_side((small_run.MICROWAVE.id,)), theirs)
    page = asked.get(address).text
    assert command not in page
    wanted = str(paired_success([1.0] * 4, [1.0, 0.0, 0.0, 0.0]))
    rows = [
        re.sub(r"\s*<[^>]*>\s*", "|", row).strip("|")
        for row in re.findall(r"<tr><th scope=\"row\">2</th>.*?</tr>", page)
    ]
    assert [re.sub(r"\|+", "|", row) for row in rows] == [
        f"2|{panel}|1.000|0.250|{wanted}|4|4" for panel in ("other", "seen-houses")
    ]


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
    monkeypatch.setattr(played_episodes, "MAX_PLAYED", 2)
    for number in range(4):
        keep(run, "first@2", f"bank {number}", small_run.episodes(2))
    assert len(list(run.root.rglob(f"played/*/*/{PARQUET}"))) == 2
    paths = run.existing("first")
    paths.created.write_text(f"{paths.moment + 1}\n")
    indexed(paths)
    assert sides(run, 2)[1]
