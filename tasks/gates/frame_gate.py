"""The gate itself: validates frames of one batch; a batch that fails is quarantined and stops the run.

A batch that passes costs one boolean validation per frame and writes nothing. Only a failure is validated again in
full, and leaves ``<quarantine>/<gate>-<n>/``: ``batch.parquet`` and the validation result, ``<rows>.json``.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from coevo.utilities.errors import CoevoError

_ALONE = RLock()
"""Lock: Great Expectations keeps the batch under validation in its context, so concurrent gates take turns."""


class GateError(CoevoError):
    """A batch failed a gate; names gate, expectation, count, a sample row and the quarantine folder."""


@dataclass(frozen=True)
class Check:
    """Conditions on the rows of a frame.

    Attributes:
        rows: plural noun for the rows; used in the message and as the name of the result file.
        frame: rows, numbered from 0.
        expectations: expectations of Great Expectations on single columns or pairs of columns.
        remedies: what to do about a column whose expectation fails, for the message.
    """

    rows: str
    frame: pd.DataFrame
    expectations: Sequence[Any]
    remedies: Mapping[str, str] = field(default_factory=dict)


def hold(gate: str, checks: Sequence[Check], batch: Callable[[], pa.Table], quarantine: Path | None) -> None:
    """Let a batch pass, or quarantine it.

    Args:
        gate: name of the gate.
        checks: checks, in order; the first that fails is reported.
        batch: function that returns the whole batch as a table, called only to quarantine it.
        quarantine: folder of the run's quarantined batches; None to keep none.

    Raises:
        GateError: an expectation does not hold.
    """
    for check in checks:
        if not _validate(check, "BOOLEAN_ONLY").success:
            result = _validate(check, "COMPLETE")
            if quarantine is None:
                raise GateError(f"gate {gate}: {_describe(result, check)}")
            folder = _next_folder(quarantine, gate)
            pq.write_table(batch(), folder / "batch.parquet")
            (folder / f"{check.rows}.json").write_text(json.dumps(result.to_json_dict(), indent=1))
            raise GateError(f"gate {gate}: {_describe(result, check)}; nothing was committed, the batch is in {folder}")


def expect() -> Any:
    """The module of expectations, imported at the first gate since this takes seconds."""
    with _ALONE:
        _batches()
    from great_expectations import expectations

    return expectations


@cache
def _batches() -> Any:
    """The one batch definition of this process, in an in-memory context."""
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.WARNING)

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("batches").add_dataframe_asset("batch")
    return asset.add_batch_definition_whole_dataframe("whole")


def _validate(check: Check, result_format: str) -> Any:
    with _ALONE:
        batch = _batches().get_batch({"dataframe": check.frame})
        from great_expectations import ExpectationSuite

        suite = ExpectationSuite(name=check.rows, expectations=list(check.expectations))
        return batch.validate(suite, result_format=result_format)


def _next_folder(quarantine: Path, gate: str) -> Path:
    folder = quarantine / f"{gate}-{len(list(quarantine.glob(f'{gate}-*'))) + 1}"
    folder.mkdir(parents=True)
    return folder


def _describe(result: Any, check: Check) -> str:
    failures = [one for one in result.results if not one.success]
    config, found = failures[0].expectation_config, failures[0].result
    about = ", ".join(f"{name}={value!r}" for name, value in config.kwargs.items() if name != "batch_id")
    sample = check.frame.iloc[found["unexpected_index_list"][0]].to_dict()
    row = ", ".join(f"{name}={str(value)[:60]!r}" for name, value in sample.items())
    more = f", and {len(failures) - 1} more expectations failed" if len(failures) > 1 else ""
    count = f"{found['unexpected_count']} of {len(check.frame)} {check.rows}"
    remedy = check.remedies.get(config.kwargs.get("column", ""), "")
    return f"{config.type}({about}) fails for {count}, for example {row}{more}{remedy and f': {remedy}'}"
