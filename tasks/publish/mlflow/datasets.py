"""Data of a run as MLflow's inputs: its training tasks and its evaluation panels."""

import json
from typing import Any

from coevo.configs.run_config import digest
from coevo.tasks.publish.mlflow.publication import Publication

LONGEST = 36
"""Longest digest of MLflow, in characters."""


def publish_datasets(client: Any, run_id: str, env: str, publication: Publication) -> None:
    """Log the tasks and the panels of a revision; MLflow stores each once."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    state = publication.manifest.state
    settings = state["config"]["env"]
    hashes = {env: digest(settings), **{f"{env}/{name}": value for name, value in state["panels"].items()}}
    inputs = [
        DatasetInput(
            Dataset(name, value[:LONGEST], "coevo", json.dumps(settings)),
            [InputTag("mlflow.data.context", "training" if name == env else "evaluation")],
        )
        for name, value in hashes.items()
    ]
    client.log_inputs(run_id, inputs)
