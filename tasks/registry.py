"""Packages in MLflow's model registry: saved as models from code, registered as versions, found and fetched again.

A model carries the code that it was packed with (``CODE``), and asks for the packages that this project pins.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement

from configs.errors import CoevoError
from tasks import telemetry
from tasks.package import Package
from tasks.signature import ARTIFACT, example, signature
from tasks.tracking.store import Store, reached
from tasks.tracking.tracker import Placement

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "mlflow" / "agent.py"
MODEL = "coevo.model"
"""Tag of what is logged for a version: the model that it is to be a version of."""
CODE = ("configs", "records", "envs", "memory", "models", "tasks")
"""Folders that the agent is made of."""
MENTION = re.compile(r"(models:/)?(?P<model>[^/@:\s]+)(/(?P<version>[0-9]{1,9})|@(?P<alias>[A-Za-z][\w.\-]*))")


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a registered model."""

    model: str
    version: int

    @property
    def name(self) -> str:
        """``MODEL/VERSION``."""
        return f"{self.model}/{self.version}"

    @property
    def uri(self) -> str:
        """As MLflow names it."""
        return f"models:/{self.name}"


def save(package: Package, into: Path) -> None:
    """Write a package as a model of MLflow into a new directory.

    Args:
        package: to be saved.
        into: the directory.

    Raises:
        CoevoError: this is no checkout of the project, which alone has the script that a model is loaded by.
    """
    if not SCRIPT.is_file():
        raise CoevoError(
            f"{SCRIPT} is not there: package in a checkout of coevo, or one that was installed with --editable"
        )
    telemetry.switch_off()
    import mlflow.pyfunc

    logging.getLogger("mlflow.pyfunc").setLevel(logging.WARNING)
    mlflow.pyfunc.save_model(
        str(into),
        python_model=str(SCRIPT),
        artifacts={ARTIFACT: str(package.directory)},
        code_paths=[str(ROOT / folder) for folder in CODE],
        pip_requirements=requirements(package),
        signature=signature(),
        input_example=example(),
    )


def register(store: Store, model: str, package: Package, placement: Placement, tags: Mapping[str, str]) -> Registered:
    """Make a package the next version of a model, which is made where there is none.

    Args:
        store: MLflow's.
        model: its name.
        package: to be registered.
        placement: experiment, and MLflow run, that it belongs to.
        tags: of the version.

    Raises:
        CoevoError: it cannot be saved, or MLflow does not take it.
    """
    with TemporaryDirectory(prefix="coevo-") as scratch, reached(store, "does not take the model") as registry:
        directory = Path(scratch) / "model"
        save(package, directory)
        name = re.sub(r"[^\w-]", "-", package.origin.name)
        logged = _logged(registry, name, placement, {**tags, MODEL: model})
        registry.log_model_artifacts(logged.model_id, str(directory))
        registry.finalize_logged_model(logged.model_id, "READY")
        _make(registry, model)
        # What is named ``models:/<id>``, or has no run, MLflow would look up in the default store, not in this one.
        linked = None if placement.run is None else logged.model_id
        where = logged.artifact_location
        made = registry.create_model_version(model, where, placement.run, dict(tags), model_id=linked)
        return Registered(model, int(made.version))


def known(store: Store, model: str, tags: Mapping[str, str]) -> Registered | None:
    """The last version of a model that has all of these tags; None where there is none.

    Raises:
        CoevoError: MLflow does not answer.
    """
    with reached(store, "does not answer") as registry:
        versions = registry.search_model_versions(f"name='{model}'")
        found = [int(each.version) for each in versions if tags.items() <= each.tags.items()]
    return Registered(model, max(found)) if found else None


def find(store: Store, text: str) -> Registered:
    """The version that ``MODEL/VERSION`` or ``MODEL@ALIAS`` names, with ``models:/`` before it or without.

    Raises:
        CoevoError: it is written in another way, or not there.
    """
    found = MENTION.fullmatch(text)
    if found is None:
        raise CoevoError(f"{text!r}: write MODEL/VERSION or MODEL@ALIAS, for example homerules-coevo-rl@champion")
    with reached(store, "does not answer") as registry:
        model = found["model"]
        versions = {int(each.version) for each in registry.search_model_versions(f"name='{model}'")}
        if not versions:
            known = ", ".join(sorted(each.name for each in registry.search_registered_models())) or "none"
            raise CoevoError(f"model {model!r} is not registered: there is {known}; `coevo package` registers one")
        aliases = {name: int(number) for name, number in registry.get_registered_model(model).aliases.items()}
    number = int(found["version"]) if found["version"] else aliases.get(found["alias"])
    if number is None:
        has = ", ".join(sorted(aliases)) or "none; `coevo promote` makes a champion"
        raise CoevoError(f"model {model!r} has no alias {found['alias']!r}: it has {has}")
    if number not in versions:
        raise CoevoError(f"model {model!r} has no version {number}: it has {', '.join(map(str, sorted(versions)))}")
    return Registered(model, number)


def fetch(store: Store, registered: Registered, into: Path) -> Path:
    """A copy of a registered model in a new directory; where it is.

    Raises:
        CoevoError: MLflow has lost it.
    """
    import mlflow.artifacts

    into.mkdir(parents=True)
    with reached(store, f"does not give {registered.name}") as registry:
        source = registry.get_model_version_download_uri(registered.model, str(registered.version))
        found = mlflow.artifacts.download_artifacts(source, dst_path=str(into), tracking_uri=store.uri)
    return Path(found)


def packaged(model: Path) -> Package:
    """The package in a model."""
    return Package(model / "artifacts" / ARTIFACT)


def requirements(package: Package) -> list[str]:
    """What has to be installed for a package: this project's pins, and installed versions where it has none."""
    bank = package.config.bank
    extras = ("", "embedding") if bank and "embedding" in bank.retrieval.model_dump_json() else ("",)
    wanted = [Requirement(text) for text in requires("coevo") or ()]
    chosen = [each for each in wanted if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras)]
    return [f"{each.name}{each.specifier or '==' + version(each.name)}" for each in chosen]


def _logged(registry: Any, name: str, placement: Placement, tags: Mapping[str, str]) -> Any:
    """What a killed attempt left without a version, which is completed; otherwise something new."""
    versions = registry.search_model_versions(f"name='{tags[MODEL]}'")
    taken = {version.source for version in versions}
    query = f"name = '{name}' AND tags.`{MODEL}` = '{tags[MODEL]}'"
    for found in registry.search_logged_models([placement.experiment], filter_string=query):
        same = found.source_run_id == placement.run and tags.items() <= found.tags.items()
        if same and found.artifact_location not in taken:
            return found
    return registry.create_logged_model(placement.experiment, name, placement.run, dict(tags), model_type="agent")


def _make(registry: Any, model: str) -> None:
    from mlflow.exceptions import MlflowException

    if not _exists(registry, model):
        try:
            registry.create_registered_model(model)
        except MlflowException:
            if not _exists(registry, model):  # another process may have made it meanwhile
                raise


def _exists(registry: Any, model: str) -> bool:
    return bool(registry.search_registered_models(f"name='{model}'", max_results=1))
