"""Evaluated revisions as MLflow's logged models, each with its figures; the weights stay in the lineage."""

from typing import Any

from tasks.tracking.publication import Publication

KIND = "policy-and-bank"


def publish_checkpoint(client: Any, run: Any, reference: str, publication: Publication) -> None:
    """Log a revision as a model that is named by its reference, once; its metrics are those of the panels.

    Args:
        client: MLflow's.
        run: MLflow's info of the run.
        reference: ``RUN@N``.
        publication: of an evaluated revision.
    """
    query = f"tags.`coevo.commit` = '{publication.commit}'"
    if client.search_logged_models([run.experiment_id], filter_string=query, max_results=1):
        return
    from mlflow.entities import LoggedModelOutput, Metric

    # Tags are written last: a model that has them is whole.
    model = client.create_logged_model(
        run.experiment_id, name=reference.replace("@", "-r"), source_run_id=run.run_id, model_type=KIND
    )
    metrics = publication.manifest.state["metrics"]
    points = [
        Metric(name, value, publication.timestamp, publication.revision, model_id=model.model_id, run_id=run.run_id)
        for name, value in metrics.items()
        if name.removeprefix("success/") in publication.manifest.state["panels"]
    ]
    client.log_batch(run.run_id, metrics=points)
    client.log_outputs(run.run_id, [LoggedModelOutput(model.model_id, publication.revision)])
    client.finalize_logged_model(model.model_id, "READY")
    tags = {"coevo.reference": reference, "coevo.commit": publication.commit}
    client.set_logged_model_tags(model.model_id, tags)
