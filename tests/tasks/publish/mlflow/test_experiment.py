"""Tags by which MLflow's page of an experiment opens on its runs and offers a view of them."""

import json

import pytest

from coevo.tasks.publish.mlflow.experiment import COLUMNS, TAG, experiment_id
from coevo.tasks.publish.mlflow.tracking_store import check_database, client, tracking_store

KIND = "mlflow.experimentKind"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        made = tracking_store(tmp_path_factory.mktemp("workspace"))
        check_database(made)
        yield made


def test_a_new_experiment_opens_on_its_runs_and_has_the_view(store):
    mlflow = client(store)
    made = mlflow.get_experiment(experiment_id(mlflow, store, "new"))
    assert made.tags[KIND] == "custom_model_development"
    view = json.loads(made.tags[TAG])
    assert (view["name"], view["createdAt"]) == ("Success, bank, seed, recipe", 0)
    assert json.loads(view["state"]) == {"selectedColumns": list(COLUMNS)}


def test_an_experiment_of_an_earlier_version_gets_what_it_lacks_and_keeps_what_it_has(store):
    mlflow = client(store)
    made = mlflow.create_experiment("old", tags={KIND: "genai_development"})
    assert experiment_id(mlflow, store, "old") == made
    tags = mlflow.get_experiment(made).tags
    assert tags[KIND] == "genai_development"
    assert TAG in tags
