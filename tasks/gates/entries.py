"""Gates on experience: candidates before replay, operations before they are applied, imported banks before use."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from coevo.memory.writers.writer import Edit
from coevo.records.arrow import entries_to_table
from coevo.records.entry import MAX_TEXT_CHARS, TEXTS, Entry
from coevo.records.inert import flaw
from coevo.tasks.gates.frame_gate import Check, expect, hold


def check_candidates(candidates: Sequence[Entry], quarantine: Path) -> None:
    """Hold back candidates with empty, too long or unsafe text, repeated ids, or sources outside of training.

    Raises:
        GateError: an expectation does not hold.
    """
    check = Check("candidates", _frame(candidates), [*_rules(), _learned()])
    hold("candidates", [check], lambda: entries_to_table(candidates), quarantine)


def check_edits(edits: Sequence[Edit], quarantine: Path) -> None:
    """Hold back operations on pools with an unsafe key, or with sources other than training episodes.

    The operations themselves are judged one by one when they are applied.

    Raises:
        GateError: an expectation does not hold.
    """
    frame = pd.DataFrame(
        {
            "scope": [edit.scope for edit in edits],
            "flaw": [flaw(edit.scope) or "" for edit in edits],
            "untrained": [next((name for name in edit.sources if "/rollout" not in name), "") for edit in edits],
        }
    )
    rules = [
        expect().ExpectColumnValueLengthsToBeBetween(column="scope", min_value=0, max_value=MAX_TEXT_CHARS),
        expect().ExpectColumnValuesToBeInSet(column="flaw", value_set=[""]),
        expect().ExpectColumnValuesToBeInSet(column="untrained", value_set=[""]),
    ]
    batch = [asdict(edit) for edit in edits]
    hold("edits", [Check("operations", frame, rules)], lambda: pa.Table.from_pylist(batch), quarantine)


def check_bank(entries: Sequence[Entry], quarantine: Path) -> None:
    """Hold back an imported bank with invalid entries (as for candidates) or with edits before creation.

    Raises:
        GateError: an expectation does not hold.
    """
    order = expect().ExpectColumnPairValuesAToBeGreaterThanB(column_A="edited", column_B="created", or_equal=True)
    check = Check("entries", _frame(entries), [*_rules(), order])
    hold("bank", [check], lambda: entries_to_table(entries), quarantine)


def _frame(entries: Sequence[Entry]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [entry.id for entry in entries],
            "strategy": [entry.strategy.strip() for entry in entries],
            "keywords": [entry.keywords.strip() for entry in entries],
            "flaw": [_flaw(entry) for entry in entries],
            "split": [entry.split for entry in entries],
            "sources": [len(entry.sources) for entry in entries],
            "created": [entry.created for entry in entries],
            "edited": [entry.edited for entry in entries],
        }
    )


def _flaw(entry: Entry) -> str:
    """The first field that a prompt or a page should not show, with the reason; empty if all are fine."""
    for name in TEXTS:
        text = getattr(entry, name)
        problem = f"is longer than {MAX_TEXT_CHARS} characters" if len(text) > MAX_TEXT_CHARS else flaw(text)
        if problem:
            return f"{name} {problem}"
    return ""


def _rules() -> list[Any]:
    return [
        expect().ExpectColumnValuesToBeUnique(column="id"),
        expect().ExpectColumnValueLengthsToBeBetween(column="strategy", min_value=1, max_value=MAX_TEXT_CHARS),
        expect().ExpectColumnValueLengthsToBeBetween(column="keywords", min_value=1, max_value=MAX_TEXT_CHARS),
        expect().ExpectColumnValuesToBeInSet(column="flaw", value_set=[""]),
        expect().ExpectColumnValuesToBeInSet(column="split", value_set=["train"]),
    ]


def _learned() -> Any:
    return expect().ExpectColumnValuesToBeBetween(column="sources", min_value=1)
