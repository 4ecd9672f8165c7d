"""The data of a run as MLflow's inputs: the tasks it trains on, and the panels that it is measured on."""

import json
from typing import Any

from configs.run import digest
from tasks.tracking.publication import Publication

LONGEST = 36
"""Characters that MLflow takes of a digest."""


def publish_datasets(client: Any, run_id: str, env: str, publication: Publication) -> None:
    """Name the tasks and the panels of a revision; MLflow keeps each once."""
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
