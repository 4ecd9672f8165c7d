"""The model behind the endpoint, loaded by MLflow. No other module here imports MLflow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, ErrorCode

import coevo

VERSION = str(mlflow.__version__)


class UnfitError(ValueError):
    """The agent cannot answer the request; the message gives the reason."""


class Model:
    """A packaged agent with its own code.

    Args:
        directory: directory of an MLflow model.
    """

    def __init__(self, directory: str) -> None:
        # The endpoint has imported coevo: rooms not imported yet come from the model.
        coevo.__path__.insert(0, str(Path(directory) / "code" / "coevo"))
        self._loaded = mlflow.pyfunc.load_model(directory)

    def predict(self, rows: Sequence[dict[str, Any]], params: dict[str, Any]) -> Any:
        """One reply per row.

        Raises:
            UnfitError: the agent cannot write a prompt, with its reason.
        """
        try:
            return self._loaded.predict(pd.DataFrame(rows), params=params)
        except MlflowException as error:
            if error.error_code != ErrorCode.Name(INVALID_PARAMETER_VALUE):
                raise
            raise UnfitError(error.message) from None
