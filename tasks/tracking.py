"""MLflow: one MLflow run for each run, revisions as its steps.

Publishing a revision again changes nothing: points carry the manifest's timestamp, artifacts overwrite their equals,
and the tag of the last revision is written in the same batch as its points, after everything else. MLflow is asked for
nothing at construction, so a server that cannot be reached keeps no run from starting.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from filelock import FileLock

from configs.errors import CoevoError
from memory.canonical import content_hash
from records.arrow import entries_to_table
from records.entry import Entry
from tasks import telemetry

BATCH = 100
"""Parameters that MLflow takes in one call."""
SQLITE = "sqlite:///"
LOCKED = 2.0
"""Seconds until a database that another process has locked is given up."""


class TrackingError(CoevoError):
    """MLflow did not take what was published; what the cursor lacks can be published later."""


class Committed(Protocol):
    """What publishing needs of a manifest."""

    @property
    def state(self) -> Mapping[str, Any]:
        """``revision``, ``parent``, ``config``, ``config_hash``, ``panels`` and ``metrics``."""

    @property
    def observed(self) -> Mapping[str, Any]:
        """``timestamp`` in ms since 1970, and ``metrics`` that are times or rates."""


@dataclass(frozen=True)
class Publication:
    """One committed revision as it is published.

    Attributes:
        manifest: of the revision.
        commit: hash of its lineage commit.
        entries: the bank of the revision; None where it is not kept any more.
    """

    manifest: Committed
    commit: str
    entries: Sequence[Entry] | None


@dataclass(frozen=True)
class Placement:
    """Where something of a run belongs in MLflow: the id of its experiment, and of its MLflow run where it has one."""

    experiment: str
    run: str | None


@dataclass(frozen=True)
class Store:
    """Where MLflow keeps things.

    Attributes:
        uri: tracking URI.
        artifacts: root URI of the artifacts of new experiments; None where the server decides.
        lock: file that is locked while a run is looked up or made: two processes that make one database fail.
    """

    uri: str
    artifacts: str | None
    lock: Path


def tracking_store(workspace: Path) -> Store:
    """What ``MLFLOW_TRACKING_URI`` names, else a database and a folder in the workspace."""
    root = workspace.resolve()
    uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{root / 'mlflow.db'}"
    return Store(uri, None if uri.startswith("http") else (root / "mlartifacts").as_uri(), root / "mlflow.lock")


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
        self._id: str | None = None
        self._tags: dict[str, str] = {}

    def publish(self, publication: Publication) -> None:
        """Publish one revision, completely or, after an exception, to be repeated.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store):
            _check_database(self._store)
            run_id = self._connect(publication.manifest.observed["timestamp"])
            tags = _tags(publication)
            if tags["coevo.config"] != self._tags.get("coevo.config"):
                self._publish_config(run_id, publication.manifest)
            if publication.entries is not None and tags["coevo.bank"] != self._tags.get("coevo.bank"):
                tags["mlflow.loggedArtifacts"] = self._publish_bank(run_id, publication.manifest, publication.entries)
            self._publish_points(run_id, publication.manifest, tags)
            self._tags |= tags

    def finish(self, status: str = "FINISHED") -> None:
        """Close the MLflow run with ``FINISHED``, ``FAILED`` or ``KILLED``; a later revision opens it again.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        if self._id is not None:
            with translated(self._store):
                _check_database(self._store)
                self._client.set_terminated(self._id, status)

    def placement(self) -> Placement:
        """Where the run is; its experiment is made where there is none.

        Raises:
            TrackingError: MLflow cannot be reached or refuses.
        """
        with translated(self._store, "does not answer"):
            _check_database(self._store)
            with FileLock(self._store.lock):
                experiment = self._experiment_id()
            found = self._search(experiment)
            return Placement(experiment, found[0].info.run_id if found else None)

    @cached_property
    def _client(self) -> Any:
        return client(self._store)

    def _connect(self, timestamp: int) -> str:
        """Id of the MLflow run, which is looked up or made once."""
        if self._id is None:
            with FileLock(self._store.lock):
                run = self._find_or_create(self._experiment_id(), timestamp)
            self._client.update_run(run.info.run_id, status="RUNNING")
            self._id, self._tags = run.info.run_id, dict(run.data.tags)
        return self._id

    def _experiment_id(self) -> str:
        known = self._client.get_experiment_by_name(self._experiment)
        if known is not None:
            return str(known.experiment_id)
        artifacts = self._store.artifacts and f"{self._store.artifacts}/{self._experiment}"
        return str(self._client.create_experiment(self._experiment, artifact_location=artifacts))

    def _find_or_create(self, experiment: str, timestamp: int) -> Any:
        found = self._search(experiment)
        if found:
            return found[0]
        tags = {"coevo.run": self._run, "coevo.origin": self._origin}
        return self._client.create_run(experiment, start_time=timestamp, tags=tags, run_name=self._run)

    def _search(self, experiment: str) -> Sequence[Any]:
        query = f"tags.`coevo.run` = '{self._run}' and tags.`coevo.origin` = '{self._origin}'"
        found: Sequence[Any] = self._client.search_runs([experiment], query, max_results=1)
        return found

    def _publish_config(self, run_id: str, manifest: Committed) -> None:
        """The resolved configuration as a file; as parameters the first one only, MLflow's cannot change."""
        config = manifest.state["config"]
        self._client.log_dict(run_id, config, f"config/r{manifest.state['revision']}.json")
        if "coevo.config" not in self._tags:
            params = [_mlflow().entities.Param(name, str(value)) for name, value in _flat(config)]
            for start in range(0, len(params), BATCH):
                self._client.log_batch(run_id, params=params[start : start + BATCH])

    def _publish_bank(self, run_id: str, manifest: Committed, entries: Sequence[Entry]) -> str:
        """The bank as a table that MLflow's pages show; returns the value of the tag that names it."""
        path = f"bank/r{manifest.state['revision']}.json"
        table = entries_to_table(entries)
        rows = [list(row.values()) for row in table.to_pylist()]
        # As text, since MLflow would indent what it encodes itself: ten times as slow.
        self._client.log_text(run_id, json.dumps({"columns": table.column_names, "data": rows}), path)
        return json.dumps([{"path": path, "type": "table"}])

    def _publish_points(self, run_id: str, manifest: Committed, tags: Mapping[str, str]) -> None:
        entities = _mlflow().entities
        step, timestamp = manifest.state["revision"], manifest.observed["timestamp"]
        points = [entities.Metric(name, value, timestamp, step) for name, value in figures(manifest).items()]
        self._client.log_batch(run_id, metrics=points, tags=[entities.RunTag(*pair) for pair in tags.items()])


def figures(manifest: Committed) -> dict[str, float]:
    """All that is published of a revision as points."""
    return {**manifest.state["metrics"], **manifest.observed.get("metrics", {})}


def client(store: Store) -> Any:
    """MLflow's client."""
    return _mlflow().MlflowClient(tracking_uri=store.uri)


@cache
def _mlflow() -> Any:
    """The package: imported in the publishing thread since it takes seconds, quiet, and quick to give a server up."""
    telemetry.switch_off()
    for name, value in {
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    }.items():
        os.environ.setdefault(name, value)
    import mlflow

    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # it would show a traceback of what is said in a line
    return mlflow


def _tags(publication: Publication) -> dict[str, str]:
    state = publication.manifest.state
    return {
        "coevo.revision": str(state["revision"]),
        "coevo.commit": publication.commit,
        "coevo.parent": str(state["parent"]),
        "coevo.config": state["config_hash"],
        **_bank_tag(publication.entries),
        **{f"coevo.panel.{name}": value for name, value in state["panels"].items()},
    }


def _bank_tag(entries: Sequence[Entry] | None) -> dict[str, str]:
    if entries is None:
        return {}
    return {"coevo.bank": content_hash(entries_to_table(entries))}


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Leaves of nested mappings with dotted names."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value


@contextmanager
def translated(store: Store, what: str = "does not take the run") -> Iterator[None]:
    """Whatever MLflow and its transport raise, as one line."""
    try:
        yield
    except (_mlflow().MlflowException, sqlite3.Error, OSError) as error:
        # Of SQLAlchemy's errors the database's own words are enough.
        reason = without_login(" ".join(str(getattr(error.__cause__, "orig", error)).split()), store.uri)[:200]
        raise TrackingError(f"MLflow at {without_login(store.uri, store.uri)} {what}: {reason}") from error


def without_login(text: str, uri: str) -> str:
    """A text without the user and password of a URI: they are a secret, and it is shown and kept."""
    login = urlsplit(uri).netloc.rpartition("@")[0]
    return text.replace(f"{login}@", "") if login else text


@contextmanager
def reached(store: Store, what: str) -> Iterator[Any]:
    """MLflow's client, where it can be reached; whatever goes wrong within is one line.

    Raises:
        TrackingError: MLflow cannot be reached or refuses.
    """
    with translated(store, what):
        _check_database(store)
        yield client(store)


def _check_database(store: Store) -> None:
    """Whether a database in a file can be written to: MLflow itself would try for minutes, and in silence."""
    path = store.uri.removeprefix(SQLITE).partition("?")[0]
    if store.uri.startswith(SQLITE):
        with FileLock(store.lock), closing(sqlite3.connect(path, timeout=LOCKED)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
