"""Signature of the packaged agent, which MLflow checks. Optional columns may be missing."""

from typing import Any

from coevo.records.demonstration import PastTurn

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
    """Input rows as in ``TurnRequest`` of ``agent``, output rows as in ``AgentReply``, and the parameters."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    text = DataType.string
    turn = Object([Property(name, text) for name in PastTurn._fields])
    entry = Object([Property("id", text), Property("strategy", text)])
    token = Object([Property("token", text), Property("logprob", DataType.double)])
    asked = [ColSpec(text, name) for name in ("instruction", "observation")]
    asked += [ColSpec(text, name, required=False) for name in ("scope", "kind", "task", "guide")]
    asked += [ColSpec(Array(turn), "history", required=False)]
    replied = [ColSpec(text, name) for name in ("text", "thought", "action", "fault", "over", "no_lesson")]
    replied += [ColSpec(DataType.boolean, "parsed"), ColSpec(Array(entry), "retrieved")]
    replied += [ColSpec(Array(token), "logprobs", required=False)]
    params = [ParamSpec("seed", DataType.long, ANY_SEED), ParamSpec("logprobs", DataType.boolean, False)]
    return ModelSignature(Schema(asked), Schema(replied), ParamSchema(params))


def example() -> Any:
    """An example request: rows and parameters."""
    import pandas as pd

    return pd.DataFrame([EXAMPLE]), {"seed": ANY_SEED}
