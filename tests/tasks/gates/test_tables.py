"""The gate on tables: each kind of bad row or reward is found before training, and named with a remedy."""

import json
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from support.row_tables import ROWS, made, rated, written

from coevo.configs.env import HomeRulesConfig
from coevo.envs.registry import make
from coevo.tasks.gates.frame_gate import GateError
from coevo.tasks.gates.tables import check_table

SPLIT = [{**row, "part": "train" if number % 3 else "test"} for number, row in enumerate(ROWS)]


def refusal(tmp_path, rows, **settings):
    with closing(made(written(tmp_path, rows), **settings)) as env, pytest.raises(GateError) as caught:
        check_table(env, tmp_path / "quarantine")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_table_and_another_environment_pass(tmp_path):
    with closing(made(written(tmp_path), answer="answer")) as env:
        check_table(env, tmp_path / "quarantine")
    with closing(make(HomeRulesConfig())) as env:
        check_table(env, tmp_path / "quarantine")
    assert not (tmp_path / "quarantine").exists()


def with_row(row):
    return [*SPLIT, row]


@pytest.mark.parametrize(
    ("rows", "says", "remedy"),
    [
        (with_row({"prompt": "a", "topic": "t", "part": "test"}), "missing='answer'", "name it in env.optional"),
        (with_row({**SPLIT[0], "answer": None}), "missing='answer'", "name it in env.optional"),
        (with_row({**SPLIT[0], "prompt": " "}), "prompt=''", "write the task into the column of env.prompt"),
        (with_row({**SPLIT[0], "part": ""}), "split=''", "name a split in each row"),
        (with_row({**SPLIT[0], "part": "train"}), "splits='test and train'", "put rows with one prompt into one split"),
        (with_row(SPLIT[0]), "copies='2'", "leave all but one of equal rows out"),
    ],
)
def test_a_bad_row_is_found_and_kept_apart(tmp_path, rows, says, remedy):
    said = refusal(tmp_path, rows, split="part")
    assert said.startswith("gate table: ")
    assert says in said
    assert remedy in said
    kept = tmp_path / "quarantine" / "table-1"
    assert pq.read_table(kept / "batch.parquet").num_rows == len(rows)
    assert json.loads((kept / "rows.json").read_text())["success"] is False


def test_a_column_that_may_be_missing_is_named(tmp_path):
    rows = with_row({"prompt": "a", "answer": "b", "part": "test"})
    with closing(made(written(tmp_path, rows), split="part", optional=("topic",))) as env:
        check_table(env, tmp_path / "quarantine")


@pytest.mark.parametrize(
    ("reward", "says"),
    [
        (rated("exact", high=0.5), "reward exact: it returned 1, which is not between low=0 and high=0.5"),
        (rated("blocks", call="async", seconds=0.2), "timeout: reward blocks: no answer in 1.2 s"),
        (rated("lacks_one", call="batched"), "it returned a list of"),
        ([rated("exact"), rated("signed", low=0.5, high=0.75)], "reward signed: it returned 1"),
    ],
)
def test_a_bad_reward_is_found_before_anything_is_trained(tmp_path, reward, says):
    said = refusal(tmp_path, ROWS, reward=reward, answer="answer")
    assert says in said or says in (tmp_path / "quarantine" / "table-1" / "answers.json").read_text()
    assert "mend the reward function, or set low, high or seconds of it" in said
