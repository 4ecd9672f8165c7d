"""The database tasks: levels, conventions, verdicts, the original's files, and texts of all kinds as actions."""

import json
import os
import re
from pathlib import Path

import pytest

from coevo.envs.base import Step
from coevo.envs.lifelong.lifelong_db import LifelongDb, true_notes
from coevo.records.demonstration import Moment, Note
from coevo.records.draws import generator, key
from coevo.utilities.errors import CoevoError, ConfigError

REAL = Path(os.environ.get("LIFELONG_AGENT_BENCH_DIR") or "/nowhere")
real = pytest.mark.skipif(not REAL.is_dir(), reason="the original's files are not here: set LIFELONG_AGENT_BENCH_DIR")
SKILLS = {
    "select", "insert", "delete", "update", "where_single_condition", "where_multiple_conditions",
    "order_by_single_column", "limit_only", "column_alias", "table_alias", "where_nested_conditions",
    "group_by_single_column", "group_by_multiple_columns", "having_single_condition_with_aggregate",
    "having_multiple_conditions_with_aggregate", "having_aggregate_calculation",
    "order_by_multiple_columns_same_direction", "order_by_multiple_columns_different_directions", "limit_and_offset",
    "subquery_single", "subquery_multiple", "subquery_nested",
}  # fmt: skip
"""The skills of the paper."""


def played(env, task, *actions, notes=()):
    """Steps of an episode: of actions, or of the expert."""
    (state, observation), steps, done = env.start(task), [], False
    while not done:
        moment = Moment(task.instruction, tuple(map(Note, notes)), (), observation)
        action = actions[len(steps)] if actions else env.advise(state, moment, key("play", task.id)).action
        steps += env.step([state], [action])
        state, observation, done = steps[-1].state, steps[-1].observation, steps[-1].done or len(steps) == len(actions)
    return steps


def drawn(env, count=30):
    return (*env.sample(count, key("drawn")), *env.panel("held-out", count).tasks)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_expert_solves_every_task_and_doing_nothing_solves_none(level):
    env = LifelongDb(level=level)
    for task in drawn(env):
        last = played(env, task, notes=true_notes(task) if level == 1 else ())[-1]
        assert (last.success, last.reward, last.done) == (True, 1.0, True), (task.instruction, last.feedback)
        assert not played(env, task, "Answer done")[-1].success
        assert not played(env, task, "Answer ")[-1].success


def test_levels_2_and_3_cover_the_skills_of_the_paper():
    covered = {
        skill for level in (2, 3) for task in drawn(LifelongDb(level=level), 120) for skill in task.data["skills"]
    }
    assert covered == SKILLS
    easy, hard = (drawn(LifelongDb(level=level), 30) for level in (2, 3))
    assert not any("subquery" in skill for task in easy for skill in task.data["skills"])
    assert any("subquery" in skill for task in hard for skill in task.data["skills"])


def test_notes_carry_the_conventions_and_guesses_are_right_a_third_of_the_time():
    env = LifelongDb()
    tasks = env.sample(300, key("conventions"))
    blind = sum(played(env, task)[-1].success for task in tasks) / len(tasks)
    assert 0.25 < blind < 0.42
    probe = env.probe(100, key("probe"))
    right, wrong = (
        [played(env, task, notes=notes)[-1].success for task, notes in zip(probe.tasks, given, strict=True)]
        for given in (probe.right, probe.wrong)
    )
    assert all(right)
    assert not any(wrong)


def test_outcomes_reveal_conventions_of_the_database():
    env = LifelongDb(databases=3)
    for task in env.sample(60, key("revealed")):
        last = played(env, task)[-1]
        note = f"{task.scope} {last.feedback}"
        assert re.fullmatch(r"\w+ answer (price|sold) is (not )?(column|state) \w+", note)
        assert (" not " not in note) == last.success == (note in true_notes(task))
        assert note.replace("not ", "") not in true_notes(task) or last.success
    (task,) = [task for task in env.sample(30, key("wrong")) if task.kind == "sell"][:1]
    assert played(env, task, "Answer done")[-1].feedback == "wrong , state is unchanged"
    assert played(env, task, "Operation DELETE FROM goods", "Answer done")[-1].feedback == "wrong , the row is gone"


def test_prices_that_an_agent_wrote_reveal_no_convention():
    env = LifelongDb()
    for task in env.sample(40, key("written")):
        if task.kind == "price":
            for column in ("net", "gross", "list_price"):
                for value in ("99", "x'00'"):
                    written = f"Operation UPDATE goods SET {column} = {value}"
                    last = played(env, task, written, "Answer 99")[-1]
                    assert last.feedback == "wrong , no price of the row"


def test_panels_are_held_out_and_the_facts_of_another_world_are_other_ones():
    env = LifelongDb()
    trained = {task.id for task in env.sample(500, key("train"))}
    held, none, other = (env.panel(name, 64) for name in env.panels)
    assert not trained & {task.id for panel in (held, none, other) for task in panel.tasks}
    assert [task.id for task in held.tasks] == [task.id for task in none.tasks]
    assert (env.panel_bank("held-out"), env.panel_bank("no-bank")) == (None, [])
    bank = {(entry.scope, entry.strategy) for entry in env.panel_bank("other-facts")}
    assert all((task.scope, note) in bank for task in other.tasks for note in true_notes(task))
    facts = [{(task.scope, note) for task in panel.tasks for note in true_notes(task)} for panel in (held, other)]
    assert facts[0] != facts[1]


def test_the_vocabulary_of_level_1_holds_every_word_of_episodes():
    env = LifelongDb()
    known = {*env.vocabulary}
    assert len(known) < 140
    for task in drawn(env, 40):
        for notes in ((), true_notes(task)):
            observation = env.start(task)[1]
            said = [task.instruction, observation, *notes]
            for step in played(env, task, notes=notes):
                said += [step.observation, step.feedback]
            assert {*" ".join(said).split()} <= known
    shown = env.demonstrations(20, 0, key("shown"))
    assert {*" ".join(turn.answer.action for turn in shown).split()} <= known
    assert LifelongDb(level=2).vocabulary == ()


def test_an_episode_ends_with_an_answer_or_after_its_steps():
    env = LifelongDb(steps=2)
    (task,) = env.sample(1, key("end"))
    first, last = played(env, task, "Operation SELECT * FROM goods", "dance")
    assert (first.done, first.valid, first.feedback) == (False, True, "ok")
    assert (last.done, last.truncated, last.valid, last.reward) == (True, True, False, 0.0)
    assert played(env, task, "Operation ")[0].observation.startswith("error: an action is Operation with ")
    failed = played(env, task, "operation\nSELECT x FROM goods")[0]
    assert (failed.valid, failed.observation, failed.feedback) == (False, "error: no such column: x", "failed")


def test_hostile_statements_and_answers_never_raise_out_of_a_step():
    env = LifelongDb(level=3)
    tasks = env.sample(4, key("hostile"))
    words = (
        "SELECT", "*", "FROM", "orders", "WHERE", "(", ")", "'", '"', "`", ";", "--", "/*", "\0", "\x1b", "\ud800",
        "UPDATE", "SET", "DELETE", "INSERT INTO", "VALUES", ",", "=", "1e999", "-9223372036854775809", "UNION", "NULL",
        "x'00'", "ORDER BY", "CAST(", "AS", "DATE", "JOIN", "LIMIT", "%s", "{}", "🙂", "\n", "CASE", "WHEN", "?", ":a",
    )  # fmt: skip
    rng = generator(key("hostile"))
    for index in range(900):
        text = " ".join(words[number] for number in rng.integers(len(words), size=rng.integers(1, 9)))
        action = f"{('Operation', 'Answer')[index % 3 == 0]} {text * (10_000 if index % 300 == 299 else 1)}"
        (step,) = env.try_step([env.start(tasks[index % 4])[0]], [action])
        assert isinstance(step, Step), f"{action[:200]!r}: {step}"


def rows_of(task, direct):
    """A task in the format of the original's files."""
    data = task.data
    return {
        "answer_info": {"direct": direct, "md5": None if direct is not None else "0" * 32, "sql": data["sql"]},
        "table_info": {
            "name": data["table"], "row_list": [list(row) for row in data["rows"]],
            "column_info_list": [{"name": name, "type": kind} for name, kind in data["columns"]],
        },
        "instruction": task.instruction, "skill_list": list(data["skills"]), "sql_instruction_row_list_entry_hash": 1,
    }  # fmt: skip


def test_files_of_the_original_are_read_and_their_own_statements_solve_them(tmp_path):
    tasks = [
        task for task in LifelongDb(level=3).sample(80, key("files")) if task.data["ordered"] or not task.data["answer"]
    ]
    entries = {str(n): rows_of(task, task.data["answer"]) for n, task in enumerate(tasks)}
    entries["x"] = rows_of(tasks[0], tasks[0].data["answer"]) | {
        "answer_info": {"direct": None, "md5": "0", "sql": "UPDATE a JOIN b ON a.i = b.i SET a.i = 1"}
    }
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "entry_dict.json").write_text(json.dumps(entries))
    env = LifelongDb(path=str(tmp_path))
    assert env.left_out == 1
    assert re.fullmatch(r"1 LifelongAgentBench/[0-9a-f]{12} without 1", env.version)
    held = env.panel("held-out", 5).tasks
    trained = env.sample(60, key("real"))
    assert not {task.id for task in held} & {task.id for task in trained}
    assert all(played(env, task)[-1].success for task in (*held, *trained))
    with pytest.raises(CoevoError, match=r"has \d+ tasks in these files, not 999"):
        env.panel("held-out", 999)


def test_the_split_of_files_depends_on_no_setting(tmp_path):
    tasks = LifelongDb(level=2).sample(40, key("split"))
    entries = {str(n): rows_of(task, task.data["answer"]) for n, task in enumerate(tasks)}
    (tmp_path / "entry_dict.json").write_text(json.dumps(entries))
    short, long = (LifelongDb(path=str(tmp_path), steps=steps) for steps in (3, 9))
    few, many = (
        [{task.data["number"] for task in tasks}, {task.data["number"] for task in env.sample(200, key("split"))}]
        for env, tasks in ((short, short.panel("held-out", 3).tasks), (long, long.panel("held-out", 3).tasks))
    )
    assert few == many


@pytest.mark.parametrize("value", [10**400, 1e999])
def test_numbers_of_files_that_no_float_holds_are_no_answer(value, tmp_path):
    (task,) = LifelongDb(level=2).sample(1, key("large"))
    entry = rows_of(task, [[value]])
    entry["answer_info"]["sql"] = "SELECT 1"
    (tmp_path / "entry_dict.json").write_text(json.dumps({"0": entry}))
    assert LifelongDb(path=str(tmp_path)).left_out == 1


@real
def test_real_tasks_are_solved_by_their_own_statements():
    env = LifelongDb(path=str(REAL))
    tasks = env.sample(400, key("real"))
    assert all(played(env, task)[-1].success for task in tasks)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "has no entry_dict.json"), ("{", "is no file of LifelongAgentBench: JSON"), ("3", "is no file of"),
        ('{"0": {"table_info": {}}}', "KeyError: 'answer_info'"), ("[" * 100_000, "is no file of"),
        ('{"0": {"table_info": {"name": "t", "column_info_list": [], "row_list": [[1]]}, "answer_info": 1}}', "1 row"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_the_original_is_refused_in_one_line(text, says, tmp_path):
    if text is not None:
        (tmp_path / "entry_dict.json").write_text(text)
    with pytest.raises(CoevoError, match=says) as caught:
        LifelongDb(path=str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_wrong_call_is_one_line():
    for call, says in (
        (lambda: LifelongDb(level=4), r"env\.level = 4"),
        (lambda: LifelongDb(steps=1), r"env\.steps = 1"),
        (lambda: LifelongDb().panel("other", 3), "choose one of held-out, no-bank, other-facts"),
        (lambda: LifelongDb().demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: LifelongDb().expert(None, key(0)), "use advise"),
    ):
        with pytest.raises((CoevoError, ConfigError), match=says):
            call()
