"""The packaged agent as a model of MLflow: one row a turn in, one reply a row out.

Imported by ``mlflow/agent.py`` alone, wherever a package is loaded; nothing of a run, its lineage or its loop is
needed.
"""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PythonModel, PythonModelContext

from configs.errors import CoevoError
from records.demonstration import PastTurn
from tasks.agent import Agent, Asked, Reply
from tasks.package import Package
from tasks.signature import ANY_SEED, ARTIFACT


class PackagedAgent(PythonModel):  # type: ignore[misc]
    """Answers requests as ``tasks.signature`` has them."""

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
    """Optional columns are absent, or hold no text where only other rows have them."""
    said = {name: row[name] for name in ("scope", "kind") if isinstance(row.get(name), str)}
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
        "retrieved": [{"id": entry.id, "strategy": entry.strategy} for entry in reply.shown],
    }
