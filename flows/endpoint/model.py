"""The model behind the endpoint, as MLflow loads it. No other module of this floor imports MLflow."""

from collections.abc import Sequence
from typing import Any

import mlflow.pyfunc
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, ErrorCode

VERSION = str(mlflow.__version__)


class UnfitError(ValueError):
    """The agent cannot answer the request, and says why."""


class Model:
    """A packaged agent with its own code.

    Args:
        directory: of a model of MLflow.
    """

    def __init__(self, directory: str) -> None:
        self._loaded = mlflow.pyfunc.load_model(directory)

    def predict(self, rows: Sequence[dict[str, Any]], params: dict[str, Any]) -> Any:
        """One reply per row.

        Raises:
            UnfitError: a prompt is longer than the policy can attend to.
        """
        try:
            return self._loaded.predict(pd.DataFrame(rows), params=params)
        except MlflowException as error:
            if error.error_code != ErrorCode.Name(INVALID_PARAMETER_VALUE):
                raise
            raise UnfitError(error.message) from None
