"""One MLflow run for each run, revisions as its steps.

Publishing a revision again changes nothing: points carry the manifest's timestamp, artifacts overwrite their equals,
traces have ids of their own, and the tag of the last revision is written in the same batch as its points, after
everything else. MLflow is asked for nothing at construction, so a server that cannot be reached keeps no run from
starting.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from filelock import FileLock

from tasks.tracking.checkpoints import publish_checkpoint
from tasks.tracking.datasets import publish_datasets
from tasks.tracking.pictures import publish_pictures
from tasks.tracking.publication import Publication, figures, identity, tags_of
from tasks.tracking.store import Store, check_database, client, package, translated
from tasks.tracking.tables import TAG as TABLES
from tasks.tracking.tables import publish_bank
from tasks.tracking.traces import Place, publish_traces

BATCH = 100
"""Parameters that MLflow takes in one call."""
ABOUT = """**{method}** on **{env}**, seed {seed}: the run `{run}`.

Steps are revisions. `success/...` is held-out success by panel, `bank/...` the experience bank, `advantage/...` what
the update learned from, `seconds/...` where time went. Runs that differ in their seed alone share `coevo.setting`.
Artifacts: the bank as a table wherever it changed (`bank/`), pictures of success and advantages (`pictures/`).
Episodes are under *Traces*, evaluated revisions under *Models*.
"""


@dataclass(frozen=True)
class Placement:
    """Where something of a run belongs in MLflow: the id of its experiment, and of its MLflow run where it has one."""

    experiment: str
    run: str | None


class Tracker:
    """Publishes the revisions of one run."""

    def __init__(self, store: Store, experiment: str, run: str, origin: str) -> None:
        """Args:
        store: where.
        experiment: the environment's name.
        run: name of the run.
        origin: what tells it from a run of the same name elsewhere, the commit of its first revision.
        """
        self._store = store
        self._experiment = experiment
        self._run = run
        self._origin = origin
        self._run_info: Any = None
        self._until: int | None = None
        self._tags: dict[str, str] = {}

    def publish(self, publication: Publication) -> None:
        """Publish one revision, completely or, after an exception, to be repeated.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            check_database(self._store)
            run = self._connect(publication)
            tags = tags_of(publication)
            if tags["coevo.config"] != self._tags.get("coevo.config"):
                self._publish_config(run.run_id, publication)
            if publication.entries is not None and tags["coevo.bank"] != self._tags.get("coevo.bank"):
                named = self._tags.get(TABLES, "[]")
                tags[TABLES] = publish_bank(self._client, run.run_id, publication, named)
            if publication.evaluated:
                self._publish_evaluation(run, publication)
            self._publish_points(run.run_id, publication, tags)
            self._tags |= tags
            self._until = publication.timestamp

    def finish(self, status: str = "FINISHED") -> None:
        """Close the MLflow run with ``FINISHED``, ``FAILED`` or ``KILLED``; a later revision opens it again.

        It ended with the revision that was published last; one that another process left open ends now.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            check_database(self._store)
            info = self._run_info or self._known()
            if info is not None:
                self._client.set_terminated(info.run_id, status, self._until)

    def placement(self) -> Placement:
        """Where the run is; its experiment is made where there is none.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store, "does not answer"):
            check_database(self._store)
            with FileLock(self._store.lock):
                experiment = self._experiment_id()
            found = self._search(experiment)
            return Placement(experiment, found[0].info.run_id if found else None)

    @cached_property
    def _client(self) -> Any:
        return client(self._store)

    def _connect(self, publication: Publication) -> Any:
        """MLflow's info of the run, which is looked up or made once."""
        if self._run_info is None:
            with FileLock(self._store.lock):
                run = self._find_or_create(self._experiment_id(), publication)
            self._client.update_run(run.info.run_id, status="RUNNING")
            self._run_info, self._tags = run.info, dict(run.data.tags)
        return self._run_info

    def _known(self) -> Any:
        experiment = self._client.get_experiment_by_name(self._experiment)
        found = () if experiment is None else self._search(experiment.experiment_id)
        return found[0].info if found else None

    def _experiment_id(self) -> str:
        known = self._client.get_experiment_by_name(self._experiment)
        if known is not None:
            return str(known.experiment_id)
        artifacts = self._store.artifacts and f"{self._store.artifacts}/{self._experiment}"
        return str(self._client.create_experiment(self._experiment, artifact_location=artifacts))

    def _find_or_create(self, experiment: str, publication: Publication) -> Any:
        found = self._search(experiment)
        if found:
            return found[0]
        who = identity(publication.manifest.state["config"], self._experiment)
        method, env, seed = (who[f"coevo.{part}"] for part in ("method", "env", "seed"))
        about = {"mlflow.note.content": ABOUT.format(method=method, env=env, seed=seed, run=self._run)}
        tags = {"coevo.run": self._run, "coevo.origin": self._origin, **who, **about}
        started = publication.timestamp
        return self._client.create_run(experiment, start_time=started, tags=tags, run_name=f"{method}-{env}-{seed}")

    def _search(self, experiment: str) -> Sequence[Any]:
        query = f"tags.`coevo.run` = '{self._run}' and tags.`coevo.origin` = '{self._origin}'"
        found: Sequence[Any] = self._client.search_runs([experiment], query, max_results=1)
        return found

    def _publish_config(self, run_id: str, publication: Publication) -> None:
        """The resolved configuration as a file; as parameters the first one only, MLflow's cannot change."""
        config = publication.manifest.state["config"]
        self._client.log_dict(run_id, config, f"config/r{publication.revision}.json")
        publish_datasets(self._client, run_id, self._experiment, publication)
        if "coevo.config" not in self._tags:
            params = [package().entities.Param(name, str(value)) for name, value in _flat(config)]
            for start in range(0, len(params), BATCH):
                self._client.log_batch(run_id, params=params[start : start + BATCH])

    def _publish_evaluation(self, run: Any, publication: Publication) -> None:
        """What takes longer, where held-out panels were played."""
        publish_pictures(self._client, run.run_id, publication)
        publish_traces(Place(self._store, run.experiment_id, run.run_id), publication)
        publish_checkpoint(self._client, run, f"{self._run}@{publication.revision}", publication)

    def _publish_points(self, run_id: str, publication: Publication, tags: Mapping[str, str]) -> None:
        entities, when = package().entities, (publication.timestamp, publication.revision)
        points = [entities.Metric(name, value, *when) for name, value in figures(publication.manifest).items()]
        self._client.log_batch(run_id, metrics=points, tags=[entities.RunTag(*pair) for pair in tags.items()])


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Leaves of nested mappings with dotted names."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value
