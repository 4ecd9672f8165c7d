"""The experiment of an environment: it opens on its runs and has a view with their success, bank, recipe and seed.

MLflow's page takes both from tags of the experiment. Without a kind it opens on the traces, since there are some. Which
columns it shows at first is fixed in the page (source, models, dataset), so success, bank size, seed, recipe and
duration are a saved view, under *Views*. The address that ``page_of`` makes opens it. The recipe is also the source of
each run.
"""

import json
from collections.abc import Mapping
from typing import Any

from coevo.tasks.publish.mlflow.publication import OVERVIEW
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, check_location

COLUMNS = (
    f"metrics.`{OVERVIEW}/Success`", f"metrics.`{OVERVIEW}/bank size`", "params.`seed`", "params.`recipe`",
    "attributes.`Duration`", "attributes.`Models`",
)  # fmt: skip
"""Columns of the view, as MLflow's page names them."""
VIEW = "coevo"
"""Key of the view in addresses."""
TAG = f"mlflow.sharedViewState.{VIEW}"
"""Tag of an experiment that holds the view."""


def page_of(experiment: str) -> str:
    """Path of an experiment's page that opens it with the view."""
    return f"/#/experiments/{experiment}/runs?viewStateShareKey={VIEW}"


def experiment_id(mlflow: Any, store: TrackingStore, name: str, of_runs: bool = True) -> str:
    """Id of an experiment, which is created if it does not exist; tags that it lacks are set, others stay as they are.

    Args:
        mlflow: MLflow's client.
        store: where; its lock is held.
        name: of the experiment.
        of_runs: the experiment is of an environment's runs and gets the view.
    """
    known = mlflow.get_experiment_by_name(name)
    if known is None:
        artifacts = store.artifacts and f"{store.artifacts}/{name}"
        return str(mlflow.create_experiment(name, artifact_location=artifacts, tags=dict(_tags(of_runs))))
    for key, value in _tags(of_runs).items():
        if key not in known.tags:
            mlflow.set_experiment_tag(known.experiment_id, key, value)
    return str(known.experiment_id)


def writable_experiment(mlflow: Any, store: TrackingStore, name: str, of_runs: bool = True) -> str:
    """``experiment_id``, once it is certain where its artifacts go.

    Raises:
        TrackingError: it keeps them in a folder in which the store may not.
    """
    found = experiment_id(mlflow, store, name, of_runs)
    check_location(store, mlflow.get_experiment(found).artifact_location, f"experiment {name!r}")
    return found


def _tags(of_runs: bool) -> Mapping[str, str]:
    # An old time: views are listed by it, so those of a user come first. The state is JSON within JSON.
    view = {"name": "Success, bank, seed, recipe", "createdAt": 0, "updatedAt": 0}
    shared = {TAG: json.dumps({**view, "state": json.dumps({"selectedColumns": COLUMNS})})} if of_runs else {}
    return {"mlflow.experimentKind": "custom_model_development", **shared}
