"""The packaged agent as an MLflow model: one row per turn in, one reply per row out.

Imported only by ``mlflow/agent.py``, where another program loads a package through MLflow; needs no run, lineage or
loop.
"""

from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PythonModel, PythonModelContext

from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED, ARTIFACT
from coevo.utilities.errors import CoevoError


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
        given = params or {}
        seed, logprobs = given.get("seed", ANY_SEED), given.get("logprobs", False)
        asked = [TurnRequest.of(row) for row in model_input.to_dict("records")]
        with self._lock:
            try:
                replies = self._agent.answer(asked, self._agent.seed if seed == ANY_SEED else seed, logprobs)
            except CoevoError as error:
                raise MlflowException.invalid_parameter_value(str(error)) from error
        return [reply.row() for reply in replies]
