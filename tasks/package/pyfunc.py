"""The packaged agent as an MLflow model: one row per turn in, one reply per row out.

MLflow checks rows against the signature; optional columns may be missing. Imported only by ``mlflow/agent.py``, where
another program loads a package through MLflow; needs no run, lineage or loop.
"""

from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PythonModel, PythonModelContext

from coevo.records.demonstration import PastTurn
from coevo.tasks.package.agent import Agent, TurnRequest
from coevo.tasks.package.package import Package
from coevo.utilities.errors import CoevoError

ARTIFACT = "package"
"""Name of the package among the model's artifacts."""

ANY_SEED = -1
"""Value of the parameter ``seed`` that selects the seed of the package's run."""

EXAMPLE = {
    "instruction": "house lotus . task heat mug to counter",
    "observation": "at safe hold nothing",
    "scope": "lotus",
    "kind": "heat",
    "task": "0123456789abcdef",
    "history": [{"observation": "at hall hold nothing", "action": "go safe", "feedback": "see mug"}],
}
"""One row of a request."""


def signature() -> Any:
    """Input rows as in ``TurnRequest`` of ``agent``, output rows as in ``AgentReply``, parameter ``seed``."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    text = DataType.string
    turn = Object([Property(name, text) for name in PastTurn._fields])
    entry = Object([Property("id", text), Property("strategy", text)])
    asked = [ColSpec(text, name) for name in ("instruction", "observation")]
    asked += [ColSpec(text, name, required=False) for name in ("scope", "kind", "task", "guide")]
    asked += [ColSpec(Array(turn), "history", required=False)]
    replied = [ColSpec(text, name) for name in ("text", "thought", "action", "fault", "over", "no_lesson")]
    replied += [ColSpec(DataType.boolean, "valid"), ColSpec(Array(entry), "retrieved")]
    return ModelSignature(Schema(asked), Schema(replied), ParamSchema([ParamSpec("seed", DataType.long, ANY_SEED)]))


def example() -> Any:
    """An example request: rows and the parameter."""
    import pandas as pd

    return pd.DataFrame([EXAMPLE]), {"seed": ANY_SEED}


class PackagedAgent(PythonModel):  # type: ignore[misc]
    """MLflow model that answers requests of the form in ``coevo.tasks.package.pyfunc``."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load policy and bank."""
        self._agent = Agent(Package(Path(context.artifacts[ARTIFACT])))
        self._lock = Lock()

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Reply to every row; one call at a time, since the engine has one set of buffers."""
        seed = (params or {}).get("seed", ANY_SEED)
        asked = [TurnRequest.of(row) for row in model_input.to_dict("records")]
        with self._lock:
            try:
                replies = self._agent.answer(asked, self._agent.seed if seed == ANY_SEED else seed)
            except CoevoError as error:
                raise MlflowException.invalid_parameter_value(str(error)) from error
        return [reply.row() for reply in replies]
