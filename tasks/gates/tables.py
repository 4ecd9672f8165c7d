"""Gate on a table of tasks: rows without a field, splits that overlap, and rewards out of range, before training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from coevo.configs.rows_config import TRAIN
from coevo.envs.base import Environment
from coevo.envs.failures import EpisodeFailure
from coevo.envs.rows.rows_environment import Rows
from coevo.envs.rows.table_splits import split_of, text_of
from coevo.envs.rows.task_table import canonical
from coevo.records.draws import generator, key
from coevo.tasks.gates.frame_gate import Check, expect, hold

TRIED = 16
"""Rows whose rewards are tried."""
TRIALS = ("0", "yes", "I do not know.")
"""Answers that are tried beside the row's own."""
REMEDIES = {
    "missing": "add the column to these rows, or name it in env.optional",
    "split": "name a split in each row",
    "prompt": "write the task into the column of env.prompt",
    "copies": "leave all but one of equal rows out",
    "splits": "put rows with one prompt into one split, or leave env.split out",
    "error": "mend the reward function, or set low, high or seconds of it",
}
"""By column, for the message."""


def check_table(env: Environment[Any], quarantine: Path | None) -> None:
    """Hold back a table with rows that lack a field or stand in it twice, with prompts in two splits, or bad rewards.

    Other environments pass. Rewards are tried on some training rows: with the right answer, where the table has one,
    and with some others. Without a folder of quarantined batches, none is kept.

    Raises:
        GateError: an expectation does not hold.
    """
    if isinstance(env, Rows):
        rows = _rows(env)
        hold("table", [rows], lambda: _batch(rows.frame), quarantine)
        rewards = _rewards(env)
        hold("table", [rewards], lambda: _batch(rewards.frame), quarantine)


def _batch(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _rows(env: Rows) -> Check:
    config, rows = env.config, env.table.rows
    required = [column for column in env.table.columns if column not in config.optional]
    prompts, splits = [text_of(row, config.prompt) for row in rows], [split_of(row, config) for row in rows]
    places: dict[str, set[str]] = {}
    for prompt, split in zip(prompts, splits, strict=True):
        places.setdefault(prompt, set()).add(split)
    copies = Counter(map(canonical, rows))
    frame = pd.DataFrame(
        {
            "row": range(1, len(rows) + 1),
            "prompt": [prompt.strip() for prompt in prompts],
            "split": splits,
            "missing": [next((name for name in required if row.get(name) is None), "") for row in rows],
            "splits": [_shown(places[prompt]) for prompt in prompts],
            "copies": [copies[canonical(row)] for row in rows],
        }
    )
    rules = [
        expect().ExpectColumnValuesToBeInSet(column="missing", value_set=[""]),
        expect().ExpectColumnValueLengthsToBeBetween(column="prompt", min_value=1),
        expect().ExpectColumnValueLengthsToBeBetween(column="split", min_value=1),
        expect().ExpectColumnValuesToBeInSet(column="splits", value_set=["one"]),
        expect().ExpectColumnValuesToBeInSet(column="copies", value_set=[1]),
    ]
    return Check("rows", frame, rules, REMEDIES)


def _shown(splits: set[str]) -> str:
    return "one" if len(splits) == 1 else " and ".join(sorted(splits))


def _rewards(env: Rows) -> Check:
    """Rewards of some answers: a value out of its range, no number, an exception and a time-out are errors."""
    train = env.splits[TRAIN]
    drawn = generator(key("rows", "tried")).permutation(len(train))[:TRIED]
    pairs = [(answer, train[index]) for index in drawn for answer in _answers(env, train[index])]
    frame = pd.DataFrame(
        {
            "prompt": [text_of(row, env.config.prompt) for _, row in pairs],
            "answer": [answer for answer, _ in pairs],
            "error": [str(each) if isinstance(each, EpisodeFailure) else "" for each in env.rewards(pairs)],
        }
    )
    return Check("answers", frame, [expect().ExpectColumnValuesToBeInSet(column="error", value_set=[""])], REMEDIES)


def _answers(env: Rows, row: Mapping[str, Any]) -> Sequence[str]:
    right = text_of(row, env.config.answer)
    return [right, *TRIALS] if right else TRIALS
