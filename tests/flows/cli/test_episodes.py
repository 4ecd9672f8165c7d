"""``coevo episodes``: held-out and training episodes of a revision, chosen, turn by turn, and written to a file."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import small_run
from support.small_run import MUG, SAFE, TASK

import coevo as product
from coevo.records.failure_reasons import MEANINGS
from coevo.tasks.revision_artifacts import write_episodes, write_held_out


def rows(coevo, *options):
    return json.loads(coevo("episodes", *options, "--json").out)


def test_failures_have_their_reason_and_the_part_of_the_lessons(coevo):
    found = rows(coevo, "first@2", "--failed")
    assert [(row["success"], row["kind"], row["reason"], row["lessons"]) for row in found] == [
        (False, "heat", "wrong end", "not followed"),
        (False, "put", "no usable action", "not followed"),
    ]
    assert [row["read"] for row in found] == [[MUG.id]] * 2
    assert [row["success"] for row in rows(coevo, "first@2")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("first@0",), 4),
        (("first@0", "--kind", "put"), 2),
        (("first@0", "--reason", "wrong end"), 2),
        (("first@0", "--reason", "wrong end", "--kind", "put"), 0),
        (("first@2", "--lesson", MUG.id[:6]), 4),
        (("first@2", "--panel", "seen-houses", "--failed"), 2),
        (("first@3", "--failed"), 0),
        (("first@3", "--training"), 4),
        (("first@3", "--training", "--failed"), 2),
    ],
)
def test_episodes_are_chosen_by_outcome_kind_reason_and_lesson(coevo, options, count):
    assert len(rows(coevo, *options)) == count


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("first@1",), "first@1 was not evaluated: choose first@0, the last one before it that was"),
        (("first@2", "--kind", "heet"), "No kind 'heet'. Did you mean 'heat'? first@2 has heat, put"),
        (("first@2", "--reason", "wrong"), "No reason 'wrong'. Did you mean 'wrong end'? Choose of no usable action"),
        (("first@2", "--panel", "x"), "No panel 'x'. first@2 has seen-houses"),
        (("first@0", "--lesson", MUG.id), f"No entry {MUG.id!r}."),
        (("first@2", "nothing"), "No episode 'nothing'. `coevo episodes first@2` lists the ids"),
        (("first@2", "2/rollout-/"), "No episode '2/rollout-/'. `coevo episodes first@2 --training` lists the ids"),
        (("first@2", "3/rollout-2/x"), "No episode '3/rollout-2/x'. It is of revision 3: `coevo episodes first@3 3/"),
        (("first@3", "2/evaluate-x/y/0"), "No episode '2/evaluate-x/y/0'. It is of revision 2: `coevo "),
        (("first@2", "--parquet", "/proc/x.parquet"), "/proc/x.parquet cannot be written"),
    ],
)
def test_what_is_not_there_is_one_line(coevo, options, line):
    told = coevo("episodes", *options)
    assert told.code == 2 and told.err.startswith(f"coevo: {line}") and told.err.count("\n") == 1


def test_people_read_a_table_and_the_number_of_each_reason(coevo):
    lines = coevo("episodes", "first@2", "--failed").out.splitlines()
    assert lines[0].split() == ["id", "kind", "instruction", "success", "reason", "lessons", "turns"]
    told = [line.split() for line in lines]
    assert ["1", "no", "usable", "action", "not", "followed"] in told
    assert ["1", "wrong", "end", "not", "followed"] in told
    kinds = told[told.index(["panel", "kind", "episodes", "failed"]) + 1 :]
    assert [row[2:] for row in kinds[:2]] == [["2", "1"], ["2", "1"]]  # all of the kind, beside those that failed
    assert lines[-1] == "4 episodes of first@2, 2 failed; 2 shown"
    assert f"not followed: {MEANINGS['not followed']}" in lines
    assert coevo("episodes", "first@2", "--reason", "wrong end").out.splitlines()[-1].endswith(" 2 failed; 1 shown")
    nothing = coevo("episodes", "first@3", "--failed").out.splitlines()
    assert nothing == ["No episode of first@3 fits.", "4 episodes of first@3, 0 failed; 0 shown"]


@pytest.mark.parametrize("lesson", [MUG.id, MUG.id[:5], SAFE, f" {SAFE}."])
def test_a_lesson_that_no_episode_read_is_told_from_one_that_is_not_there(coevo, lesson):
    told = coevo("episodes", "first@1", "--training", "--lesson", lesson)
    assert (told.code, rows(coevo, "first@1", "--training", "--lesson", lesson)) == (0, [])
    assert f"None read {MUG.id} ({SAFE}): `coevo bank why first@1 {MUG.id}`" in told.out
    assert len(rows(coevo, "first@2", "--training", "--lesson", lesson)) == 4
    assert coevo("episodes", "first@1", "--training", "--lesson", "lotus mug").err.startswith("coevo: No entry")


def test_a_panel_with_a_bank_of_its_own_is_left_out_of_the_readers_of_a_lesson(coevo, tmp_path, monkeypatch):
    def held_out(revision, solved, own=small_run.held_out):
        return [*own(revision, solved), *(elsewhere(each) for each in own(revision, solved)[:2])]

    def elsewhere(kept):
        first, *rest = kept.episode.turns
        turns = (replace(first, retrieved=(MUG.id, "facefacefac")), *rest)
        name = kept.episode.id.replace("seen-houses", "other-facts")
        return replace(kept, panel="other-facts", episode=replace(kept.episode, id=name, turns=turns))

    monkeypatch.setattr(small_run, "held_out", held_out)
    small_run.build(tmp_path)
    wanted = ("first@2", "--lesson", MUG.id, "--workspace", tmp_path)
    assert {row["panel"] for row in rows(coevo, *wanted)} == {"seen-houses"}
    assert "left out: 2 of other-facts, which is played with a bank of its own" in coevo("episodes", *wanted).out
    assert len(rows(coevo, *wanted, "--panel", "other-facts")) == 2
    assert len(rows(coevo, "first@2", "--lesson", "facefacefac", "--workspace", tmp_path)) == 2


GROUP = small_run.source(3, 0).rpartition("/")[0]


def test_training_failures_are_counted_by_group(coevo):
    found = rows(coevo, "first@3", "--training")
    assert {(row["group"], row["group_episodes"], row["group_failed"]) for row in found} == {(GROUP, 4, 2)}
    lines = [line.split() for line in coevo("episodes", "first@3", "--training", "--failed").out.splitlines()]
    assert [GROUP, "heat", *TASK.instruction.split(), "4", "2"] in lines
    assert lines[-1] == ["4", "training", "episodes", "of", "first@3,", "2", "failed;", "2", "shown"]


def test_the_id_of_a_training_episode_or_a_group_is_enough(coevo, tmp_path):
    one = ("episodes", "first@3", f"{GROUP}/2")
    assert coevo(*one).out == coevo(*one, "--training").out != ""
    lines = coevo("episodes", "first@3", GROUP, "--parquet", tmp_path / "group.parquet").out.splitlines()
    assert (lines[0], lines[-1]) == (TASK.instruction, "4 episodes, 2 failed")
    assert len([line for line in lines if line.endswith("go safe, put counter")]) == 4
    assert [row["actions"] for row in rows(coevo, "first@3", GROUP)] == [["go safe", "put counter"]] * 4
    assert pq.read_table(tmp_path / "group.parquet").num_rows == 4
    assert f"{GROUP} is a group: choose of {GROUP}/0, " in coevo("episodes", "first@3", GROUP, "--prompts").err


def test_one_episode_is_shown_turn_by_turn_with_the_lessons_of_its_revision(coevo):
    name = rows(coevo, "first@2", "--failed")[0]["id"]
    told = coevo("episodes", "first@2", name).out
    assert told.splitlines()[0] == TASK.instruction
    assert f"lesson {MUG.id[:8]}: {SAFE}" in told and "observation: at hall" in told and "action: go safe" in told
    assert told.splitlines()[-2] == "not solved: wrong end, not followed"
    assert told.splitlines()[-1].startswith("not followed: all that the task needs stood in prompts")
    turns = json.loads(coevo("episodes", "first@2", name, "--json").out)["turns"]
    assert [turn["feedback"] for turn in turns] == ["mug in safe", "not done"]
    assert [turn["prompt"] for turn in turns] == [None, None]  # the small run has no policy
    assert "prompt: not kept" in coevo("episodes", "first@2", name, "--prompts").out
    assert "--prompts needs an episode" in coevo("episodes", "first@2", "--prompts").err


def test_chosen_episodes_are_written_with_all_of_their_turns(coevo, tmp_path):
    coevo("episodes", "first@2", "--failed", "--parquet", tmp_path / "failed.parquet")
    table = pq.read_table(tmp_path / "failed.parquet")
    assert table.num_rows == 2 and {"panel", "reason", "lessons", "turns"} <= set(table.column_names)
    one = table["id"][0].as_py()
    coevo("episodes", "first@2", one, "--parquet", tmp_path / "one.parquet")
    assert pq.read_table(tmp_path / "one.parquet")["id"].to_pylist() == [one]


def test_python_gets_them_as_a_frame(small_workspace):
    found = product.episodes("first@2", failed=True, workspace=small_workspace)
    assert found["reason"].tolist() == ["wrong end", "no usable action"]


def no_table(episodes, directory):
    directory.mkdir(parents=True)
    (directory / "episodes.parquet").write_bytes(b"PAR1 and nothing else")


def other_columns(episodes, directory):
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"id": ["a"], "panel": ["b"]}), directory / "episodes.parquet")


def no_reasons(episodes, directory):
    write_episodes((each.episode for each in episodes), directory)


def torn(episodes, directory):
    write_held_out(episodes, directory)
    table = pq.read_table(directory / "episodes.parquet")
    data = pa.array(["[" * 100_000] * len(table), pa.string())
    pq.write_table(table.set_column(table.column_names.index("data"), "data", data), directory / "episodes.parquet")


@pytest.mark.parametrize("written", [no_table, other_columns, no_reasons, torn])
def test_what_is_no_table_of_episodes_is_one_line(coevo, tmp_path, monkeypatch, written):
    """A pulled run may hold anything."""
    monkeypatch.setattr(small_run, "write_held_out", written)
    small_run.build(tmp_path, "pulled")
    told = coevo("episodes", "pulled", "--workspace", tmp_path)
    assert told.code == 2 and told.err.count("\n") == 1
    assert "its artifact 'held_out' is no table of episodes" in told.err and "`coevo fsck`" in told.err
