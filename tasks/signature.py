"""What a packaged agent is sent and what it answers, as MLflow checks it. Optional columns may be left out."""

from typing import Any

from records.demonstration import PastTurn

ARTIFACT = "package"
"""Name of the package among the model's artifacts."""

ANY_SEED = -1
"""Value of the parameter ``seed`` that stands for the seed of the package's run."""

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
    """Rows of ``tasks.agent.Asked`` in, rows of ``tasks.agent.Reply`` out, and a seed for the whole request."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import Array, Object, Property

    text = DataType.string
    turn = Object([Property(name, text) for name in PastTurn._fields])
    entry = Object([Property("id", text), Property("strategy", text)])
    asked = [ColSpec(text, name) for name in ("instruction", "observation")]
    asked += [ColSpec(text, name, required=False) for name in ("scope", "kind", "task")]
    asked += [ColSpec(Array(turn), "history", required=False)]
    replied = [ColSpec(text, name) for name in ("text", "thought", "action")] + [ColSpec(Array(entry), "retrieved")]
    return ModelSignature(Schema(asked), Schema(replied), ParamSchema([ParamSpec("seed", DataType.long, ANY_SEED)]))


def example() -> Any:
    """A request: rows, and the parameter."""
    import pandas as pd

    return pd.DataFrame([EXAMPLE]), {"seed": ANY_SEED}
