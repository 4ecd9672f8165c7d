"""Splits: a keyed hash keeps equal prompts together and does not move a row when others come; a column names panels."""

import pytest
from support.row_tables import ROWS, configured

from coevo.envs.rows.table_splits import rows_by_split, split_of
from coevo.envs.rows.task_table import TableError, table_of

MANY = [{"prompt": f"question {n}", "answer": str(n)} for n in range(2000)]


def splits(rows, **settings):
    return rows_by_split(table_of(rows, "rows"), configured("rows.jsonl", **settings))


def test_a_hash_holds_out_the_share_that_is_asked_for():
    found = splits(MANY, held_out=0.2)
    assert 0.17 < len(found["held-out"]) / len(MANY) < 0.23
    assert sorted(row["prompt"] for rows in found.values() for row in rows) == sorted(row["prompt"] for row in MANY)


def test_a_row_stays_where_it_is_when_others_come_and_equal_prompts_stay_together():
    before, after = splits(MANY[:1000]), splits([*reversed(MANY), *({**row, "answer": "?"} for row in MANY)])
    prompts = {row["prompt"] for row in after["held-out"]}
    assert {row["prompt"] for row in before["held-out"]} <= prompts
    assert not prompts & {row["prompt"] for row in after["train"]}


def test_another_seed_holds_out_other_rows():
    one, other = ({row["prompt"] for row in splits(MANY, split_seed=seed)["held-out"]} for seed in (0, 1))
    assert one != other


def test_the_hash_is_what_it_was():
    config = configured("rows.jsonl", held_out=0.5)
    assert "".join(split_of(row, config)[0] for row in ROWS[:16]) == PINNED


PINNED = "thhhhhhthhttthhh"


def test_a_column_names_the_split_of_each_row():
    rows = [
        {**row, "part": part} for row, part in zip(ROWS, ["train", "test", "demonstration", "dev"] * 15, strict=True)
    ]
    found = splits(rows, split="part")
    assert {name: len(each) for name, each in found.items()} == dict.fromkeys(
        ("train", "test", "demonstration", "dev"), 15
    )


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (("test", "dev"), "no row of rows is in 'train': mark the rows to train on"),
        (("train", "train"), "no row of rows is held out"),
        (("train", "demonstration"), "no row of rows is held out"),
        (("train", "a/b"), "'a/b' is no name of a split"),
        (("train", "../x"), "'../x' is no name of a split"),
    ],
)
def test_what_cannot_be_split_is_one_line(parts, says):
    rows = [{**row, "part": part} for row, part in zip(ROWS, parts * 30, strict=True)]
    with pytest.raises(TableError, match=r"env\.split=part") as caught:
        splits(rows, split="part")
    assert says in str(caught.value)
