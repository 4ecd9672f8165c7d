"""One MLflow run per run, with revisions as its steps.

Publishing a revision again changes nothing: points have the manifest's timestamp, artifacts overwrite equal ones,
traces have fixed ids, and the tag of the last revision is written in the same batch as its points, after everything
else. The constructor does not contact MLflow, so an unreachable server does not prevent a run from starting.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from filelock import FileLock

from coevo.configs.run_config import digest
from coevo.lineage.revision.code_version import flat
from coevo.lineage.status import RunStatus
from coevo.models.policy.decoder import Decode
from coevo.tasks.publish.mlflow.experiment import writable_experiment
from coevo.tasks.publish.mlflow.page_tables import TAG as TABLES
from coevo.tasks.publish.mlflow.page_tables import publish_bank, register_bank
from coevo.tasks.publish.mlflow.pictures import publish_pictures
from coevo.tasks.publish.mlflow.publication import Publication, identity, points, status_tags, tags_of
from coevo.tasks.publish.mlflow.run_names import free_name, is_right, other_names
from coevo.tasks.publish.mlflow.traces import TraceDestination, publish_traces
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, check_database, client, package, translated

MLFLOW_STATUS = {
    "running": "RUNNING", "new": "SCHEDULED", "waiting": "SCHEDULED", "finished": "FINISHED", "stopped": "KILLED",
    "failed": "FAILED", "crashed": "FAILED", "faulty": "FAILED",
}  # fmt: skip
"""Status of the MLflow run for each status of a run, which its tag ``coevo.status`` has in coevo's own word."""
BATCH = 100
"""Most parameters per call of MLflow."""
ABOUT = """**{method}** on **{env}**, seed {seed}: the run `{run}`.

Steps are revisions. Metrics, in reading order: `Overview/...` is success on the first panel, the size of the bank and
success in training; `agent/...` what the agent achieves, by panel; `bank/...` the experience bank; `cost/...` episodes,
tokens and seconds; `policy/...` rewards, advantages and the update.
Runs that differ in their seed alone share `coevo.setting`.
Artifacts: the bank as a table wherever it changed (`bank/`), pictures of success and of distributions (`pictures/`).
Episodes are under *Traces*, held-out ones with their panel in `coevo.evaluation_set`; evaluated revisions are under
*Models*; versions of the bank are the registered model `{run}-bank`.
"""
KIND = "policy-and-bank"
COMMIT = "coevo.commit"
MAX_DIGEST_CHARS = 36
"""Longest digest of MLflow, in characters."""


@dataclass(frozen=True)
class Placement:
    """Ids of a run's experiment in MLflow, and of its MLflow run if it has one."""

    experiment: str
    run: str | None


class Tracker:
    """Publisher of the revisions of one run."""

    def __init__(
        self, store: TrackingStore, experiment: str, run: str, origin: str, decode: Decode = lambda _: None
    ) -> None:
        """Args:
        store: MLflow's store.
        experiment: name of the environment.
        run: name of the run.
        origin: creation time of the run, as in its file ``created``; it distinguishes runs of the same name.
        decode: text of a prompt's token ids, for the traces.
        """
        self._store = store
        self._experiment = experiment
        self._run = run
        self._origin = origin
        self._decode = decode
        self._run_info: Any = None
        self._tags: dict[str, str] = {}

    def publish(self, publication: Publication) -> None:
        """Publish one revision; after an exception, call it again.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            check_database(self._store)
            run = self._connect(publication.manifest.state["config"], publication.began)
            tags = tags_of(publication)
            if tags["coevo.config"] != self._tags.get("coevo.config"):
                self._publish_config(run.run_id, publication)
            if publication.entries is not None and tags["coevo.bank"] != self._tags.get("coevo.bank"):
                named = self._tags.get(TABLES, "[]")
                tags[TABLES] = publish_bank(self._client, run.run_id, publication, named)
                register_bank(self._client, run, publication)
            if publication.evaluated:
                self._publish_evaluation(run, publication)
            self._publish_points(run.run_id, publication, tags)
            self._tags |= tags

    def begin(self, config: Mapping[str, Any], status: RunStatus) -> None:
        """Show a run that is running, from before its first revision on.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            check_database(self._store)
            run = self._connect(config, int(time.time() * 1000))
            self._set_tags(run.run_id, status_tags(status))

    def finish(self, status: RunStatus, seconds: float) -> None:
        """Give the MLflow run the status of a run that no process writes to; a later revision opens it again.

        MLflow shows the end time minus the start time as the duration, so that the end is ``seconds`` after the start.

        Args:
            status: status of the run.
            seconds: wall-clock seconds of its revisions.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            check_database(self._store)
            info = self._run_info or self._known()
            if info is not None:
                self._set_tags(info.run_id, {**status_tags(status), "coevo.seconds": f"{seconds:.1f}"})
                end = info.start_time + max(1, round(seconds * 1000))
                self._client.set_terminated(info.run_id, MLFLOW_STATUS[status.status], end)

    def rename(self) -> None:
        """Give the MLflow run the run's name, where it has another one or shares it.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store), FileLock(self._store.lock):
            info = self._run_info or self._known()
            if info is not None:
                taken = other_names(self._client, info.experiment_id, self._run, info.run_id)
                if not is_right(info.run_name, self._run, taken):
                    self._client.update_run(info.run_id, name=free_name(self._run, taken))

    def placement(self) -> Placement:
        """Ids of the run in MLflow; its experiment is created if missing.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store, "does not answer"):
            check_database(self._store)
            with FileLock(self._store.lock):
                experiment = writable_experiment(self._client, self._store, self._experiment)
            found = self._search(experiment)
            return Placement(experiment, found[0].info.run_id if found else None)

    @cached_property
    def _client(self) -> Any:
        return client(self._store)

    def _connect(self, config: Mapping[str, Any], started: int) -> Any:
        """MLflow's info of the run, looked up or created once; ``started`` is its start in ms since 1970."""
        if self._run_info is None:
            with FileLock(self._store.lock):
                experiment = writable_experiment(self._client, self._store, self._experiment)
                run = self._find_or_create(experiment, config, started)
            self._client.update_run(run.info.run_id, status="RUNNING")
            self._run_info, self._tags = run.info, dict(run.data.tags)
        return self._run_info

    def _known(self) -> Any:
        experiment = self._client.get_experiment_by_name(self._experiment)
        found = () if experiment is None else self._search(experiment.experiment_id)
        return found[0].info if found else None

    def _find_or_create(self, experiment: str, config: Mapping[str, Any], started: int) -> Any:
        found = self._search(experiment)
        if found:
            return found[0]
        who = identity(config, self._experiment)
        method, env, seed = (who[f"coevo.{part}"] for part in ("method", "env", "seed"))
        about = {"mlflow.note.content": ABOUT.format(method=method, env=env, seed=seed, run=self._run)}
        source = {"mlflow.source.name": config["recipe"], "mlflow.source.type": "LOCAL"}
        tags = {"coevo.run": self._run, "coevo.origin": self._origin, **who, **about, **source}
        name = free_name(self._run, other_names(self._client, experiment, self._run))
        return self._client.create_run(experiment, start_time=started, tags=tags, run_name=name)

    def _search(self, experiment: str) -> Sequence[Any]:
        query = f"tags.`coevo.run` = '{self._run}' and tags.`coevo.origin` = '{self._origin}'"
        found: Sequence[Any] = self._client.search_runs([experiment], query, max_results=1)
        return found

    def _publish_config(self, run_id: str, publication: Publication) -> None:
        """Log the configuration as a file; as parameters only the first one, since MLflow's cannot change."""
        config = publication.manifest.state["config"]
        self._client.log_dict(run_id, config, f"config/r{publication.revision}.json")
        publish_datasets(self._client, run_id, self._experiment, publication)
        if "coevo.config" not in self._tags:
            params = [package().entities.Param(name, str(value)) for name, value in flat(config).items()]
            for start in range(0, len(params), BATCH):
                self._client.log_batch(run_id, params=params[start : start + BATCH])

    def _publish_evaluation(self, run: Any, publication: Publication) -> None:
        """Log pictures, traces and the checkpoint of an evaluated revision, which takes longer."""
        publish_pictures(self._client, run.run_id, publication)
        publish_traces(TraceDestination(self._store, run.experiment_id, run.run_id, self._decode), publication)
        reference = f"{self._run}@{publication.revision}"
        publish_checkpoint(self._client, run, self._experiment, reference, publication)

    def _publish_points(self, run_id: str, publication: Publication, tags: Mapping[str, str]) -> None:
        entities, when = package().entities, (publication.timestamp, publication.revision)
        values = [entities.Metric(name, value, *when) for name, value in points(publication.manifest).items()]
        tags = {**tags, **self._parent_run(publication)}
        self._client.log_batch(run_id, metrics=values, tags=[entities.RunTag(*pair) for pair in tags.items()])

    def _parent_run(self, publication: Publication) -> dict[str, str]:
        """Tag that shows a branch below the run that it branched from, if that is in the same experiment."""
        origin = publication.manifest.observed.get("branched_from")
        experiment = None if origin is None else self._client.get_experiment_by_name(self._experiment)
        if origin is None or experiment is None:
            return {}
        query = f"tags.`coevo.run` = '{origin['run']}'"
        found = self._client.search_runs([experiment.experiment_id], query, max_results=1)
        return {"mlflow.parentRunId": found[0].info.run_id} if found else {}

    def _set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        self._client.log_batch(run_id, tags=[package().entities.RunTag(*pair) for pair in tags.items()])


def publish_checkpoint(client: Any, run: Any, env: str, reference: str, publication: Publication) -> None:
    """Log a revision as a model named after its reference, once, with the metrics of the panels.

    Args:
        client: MLflow's client.
        run: MLflow's info of the run.
        env: name of the environment, which its datasets begin with.
        reference: ``RUN@N``.
        publication: publication of an evaluated revision.
    """
    model = _model(client, run, reference.replace("@", "-r"), publication.commit)
    # Tags are written last: a model with tags is complete.
    if COMMIT in model.tags:
        return
    client.log_batch(run.run_id, metrics=_points(run, model, env, publication))
    if all(output.model_id != model.model_id for output in client.get_run(run.run_id).outputs.model_outputs):
        from mlflow.entities import LoggedModelOutput

        client.log_outputs(run.run_id, [LoggedModelOutput(model.model_id, publication.revision)])
    client.finalize_logged_model(model.model_id, "READY")
    client.set_logged_model_tags(model.model_id, {"coevo.reference": reference, COMMIT: publication.commit})


def _model(client: Any, run: Any, name: str, commit: str) -> Any:
    """The model of a commit, even if a killed attempt left it incomplete; otherwise a new one."""
    query = f"name = '{name}' AND source_run_id = '{run.run_id}'"
    found = client.search_logged_models([run.experiment_id], filter_string=query)
    mine = [model for model in found if model.tags.get(COMMIT, commit) == commit]
    # Prefer a complete one.
    made = max(mine, key=lambda model: COMMIT in model.tags, default=None)
    return made or client.create_logged_model(run.experiment_id, name, run.run_id, model_type=KIND)


def _points(run: Any, model: Any, env: str, publication: Publication) -> list[Any]:
    """Success of a model on each panel, joined to the panel's dataset of ``publish_datasets``."""
    from mlflow.entities import Metric

    panels, metrics = publication.manifest.state["panels"], publication.manifest.metrics
    when = (publication.timestamp, publication.revision)
    return [
        Metric(
            f"agent/success/{panel}",
            metrics[f"agent/success/{panel}"],
            *when,
            model_id=model.model_id,
            run_id=run.run_id,
            dataset_name=f"{env}/{panel}",
            dataset_digest=panels[panel][:MAX_DIGEST_CHARS],
        )
        for panel in panels
        if f"agent/success/{panel}" in metrics
    ]


def publish_datasets(client: Any, run_id: str, env: str, publication: Publication) -> None:
    """Log the tasks and the panels of a revision; MLflow stores each once."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    state = publication.manifest.state
    settings = state["config"]["env"]
    hashes = {env: digest(settings), **{f"{env}/{name}": value for name, value in state["panels"].items()}}
    inputs = [
        DatasetInput(
            Dataset(name, value[:MAX_DIGEST_CHARS], "coevo", json.dumps(settings)),
            [InputTag("mlflow.data.context", "training" if name == env else "evaluation")],
        )
        for name, value in hashes.items()
    ]
    client.log_inputs(run_id, inputs)
