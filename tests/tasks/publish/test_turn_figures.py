"""Seconds and scores of turns are kept beside the revisions, in bounded number; what is damaged says nothing."""

from dataclasses import replace

import pytest
from support import small_run

from coevo.lineage.workspace import RunPaths
from coevo.tasks.publish import turn_figures
from coevo.tasks.publish.turn_figures import (
    FOLDER,
    TurnFigures,
    copy_turn_figures,
    read_turn_figures,
    with_turn_figures,
    write_turn_figures,
)


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path)


def measured(revision, seconds, scores):
    """Episodes of a revision whose turns have these figures."""
    played = small_run.episodes(revision, (small_run.MUG,))
    return [
        replace(each, turns=tuple(replace(turn, seconds=seconds, lesson_scores=scores) for turn in each.turns))
        for each in played
    ]


@pytest.mark.parametrize(("seconds", "scores"), [(0.25, (0.5,)), (None, (0.5, None)), (0.25, ()), (0.25, (None,))])
def test_figures_come_back_by_episode(paths, seconds, scores):
    played = measured(3, seconds, scores)
    write_turn_figures(paths, 3, played)
    assert read_turn_figures(paths, 3, played[1].id) == [TurnFigures(seconds, scores)] * 2
    assert read_turn_figures(paths, 3, "another") == read_turn_figures(paths, 4, played[1].id) == []


def test_stored_episodes_get_their_figures_again_here_and_in_a_branch(paths, tmp_path):
    played = [
        replace(each, turns=(replace(each.turns[0], drawing=0.125), *each.turns[1:])) for each in measured(3, 0.25, ())
    ]
    for revision in (2, 3, 4):
        write_turn_figures(paths, revision, played)
    branch = RunPaths(tmp_path / "branch")
    branch.root.mkdir()
    copy_turn_figures(paths, branch, 3)
    assert sorted(file.name for file in (branch.root / FOLDER).iterdir()) == ["r2.parquet", "r3.parquet"]
    stored = small_run.episodes(3, (small_run.MUG,))
    for each in (paths, branch):
        (first, *_) = with_turn_figures(each, 3, stored)
        assert [(turn.seconds, turn.drawing) for turn in first.turns] == [(0.25, 0.125), (0.25, None)]
    assert with_turn_figures(branch, 4, stored)[0].turns[0].seconds is None
    copy_turn_figures(RunPaths(tmp_path / "none"), branch, 3)


def test_turns_without_figures_leave_no_file(paths):
    write_turn_figures(paths, 3, small_run.episodes(3))
    assert list(paths.root.iterdir()) == []


def test_figures_are_no_part_of_the_record():
    assert measured(3, 0.25, (0.5,)) == measured(3, 0.75, ()) == small_run.episodes(3, (small_run.MUG,))


@pytest.mark.parametrize("harm", [b"", b"no table " * 100, None])
def test_a_damaged_file_says_nothing(paths, harm):
    played = measured(3, 0.25, (0.5,))
    write_turn_figures(paths, 3, played)
    (file,) = (paths.root / FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:-20] if harm is None else harm)
    assert read_turn_figures(paths, 3, played[0].id) == []


def test_the_latest_revisions_are_kept(paths, monkeypatch):
    monkeypatch.setattr(turn_figures, "MAX_FILES", 2)
    for revision in (9, 10, 11):
        write_turn_figures(paths, revision, measured(revision, 0.25, ()))
    assert sorted(file.name for file in (paths.root / FOLDER).iterdir()) == ["r10.parquet", "r11.parquet"]
