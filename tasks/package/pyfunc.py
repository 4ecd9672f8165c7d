"""The packaged agent as an MLflow model: one row per turn in, one reply per row out.

Imported only by ``mlflow/agent.py``, wherever a package is loaded; needs no run, lineage or loop.
"""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PythonModel, PythonModelContext

from coevo.configs.errors import CoevoError
from coevo.records.demonstration import PastTurn
from coevo.tasks.package.agent import Agent, Asked, Reply
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED, ARTIFACT


class PackagedAgent(PythonModel):  # type: ignore[misc]
    """MLflow model that answers requests of the form in ``coevo.tasks.package.signature``."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load policy and bank."""
        self._agent = Agent(Package(Path(context.artifacts[ARTIFACT])))
        self._lock = Lock()

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Reply to every row; one call at a time, since the engine has one set of buffers."""
        seed = (params or {}).get("seed", ANY_SEED)
        asked = [_asked(row) for row in model_input.to_dict("records")]
        with self._lock:
            try:
                replies = self._agent.answer(asked, self._agent.seed if seed == ANY_SEED else seed)
            except CoevoError as error:
                raise MlflowException.invalid_parameter_value(str(error)) from error
        return [_row(reply) for reply in replies]


def _asked(row: Mapping[str, Any]) -> Asked:
    """Parse a row; optional columns may be missing, or hold no text if only other rows have them."""
    said = {name: row[name] for name in ("scope", "kind", "guide") if isinstance(row.get(name), str)}
    turns = row.get("history")
    history = () if turns is None or isinstance(turns, float) else turns
    return Asked(
        instruction=row["instruction"],
        observation=row["observation"],
        history=tuple(PastTurn(**turn) for turn in history),
        id=row["task"] if isinstance(row.get("task"), str) else row["instruction"],
        **said,
    )


def _row(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "thought": reply.answer.thought,
        "action": reply.answer.action,
        "valid": not reply.fault,
        "fault": str(reply.fault),
        "over": reply.over,
        "retrieved": [{"id": entry.id, "strategy": entry.strategy} for entry in reply.shown],
    }
