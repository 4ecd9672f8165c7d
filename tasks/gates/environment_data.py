"""Gates on data sets of an environment: panels and demonstrations."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from coevo.records.demonstration import Demonstration
from coevo.records.task import Panel
from coevo.tasks.gates.frame_gate import Check, expect, hold


def check_panel(panel: Panel, quarantine: Path) -> None:
    """Hold back a panel with repeated tasks, empty instructions, or a split other than the panel's name.

    Raises:
        GateError: an expectation does not hold.
    """
    frame = pd.DataFrame(
        {
            "task": [task.id for task in panel.tasks],
            "instruction": [task.instruction.strip() for task in panel.tasks],
            "split": [task.split for task in panel.tasks],
        }
    )
    check = Check("tasks", frame, _rules(panel))
    hold(f"panel-{panel.name}", [check], lambda: pa.Table.from_pandas(frame), quarantine)


def _rules(panel: Panel) -> list[Any]:
    return [
        expect().ExpectColumnValuesToBeUnique(column="task"),
        expect().ExpectColumnValueLengthsToBeBetween(column="instruction", min_value=1),
        expect().ExpectColumnValuesToBeInSet(column="split", value_set=[panel.name]),
    ]


def check_demonstrations(demonstrations: Sequence[Demonstration], quarantine: Path) -> None:
    """Hold back demonstrations without an instruction, an observation or an action.

    Raises:
        GateError: an expectation does not hold.
    """
    frame = _texts(demonstrations)
    rules = [expect().ExpectColumnValueLengthsToBeBetween(column=column, min_value=1) for column in frame.columns]
    batch = [asdict(one) for one in demonstrations]
    hold("demonstrations", [Check("turns", frame, rules)], lambda: pa.Table.from_pylist(batch), quarantine)


def _texts(demonstrations: Sequence[Demonstration]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "instruction": [one.moment.instruction.strip() for one in demonstrations],
            "observation": [one.moment.observation.strip() for one in demonstrations],
            "action": [one.answer.action.strip() for one in demonstrations],
        }
    )
