"""Packages in MLflow's model registry: saved as models from code, registered as versions, found and fetched.

A model contains the code that it was packed with (``CODE``), for programs that load it through MLflow, and requires the
packages that this project pins. coevo itself takes the package out of it and never runs that code.
"""

import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coevo.lineage.packages import Packages
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ARTIFACT, example, signature
from coevo.tasks.publish.mlflow.page_tables import BANK, KIND
from coevo.tasks.publish.mlflow.tracker import Placement
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, check_location, reached
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import requirements

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "mlflow" / "agent.py"
MODEL = "coevo.model"
"""Tag of a logged model: name of the registered model that it belongs to."""
CODE = ("utilities", "configs", "records", "envs", "memory", "models", "tasks")
"""Rooms of coevo that the agent needs."""
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
        """MLflow's URI of the version."""
        return f"models:/{self.name}"


def save(package: Package, into: Path) -> None:
    """Write a package as an MLflow model into a new directory.

    Args:
        package: package to save.
        into: directory of the model.
    """
    import mlflow.pyfunc

    logging.getLogger("mlflow.pyfunc").setLevel(logging.WARNING)
    with TemporaryDirectory(prefix="coevo-") as scratch:
        mlflow.pyfunc.save_model(
            str(into),
            python_model=str(SCRIPT),
            artifacts={ARTIFACT: package.directory.absolute().as_uri()},  # MLflow reads a path as a URI: % and #
            code_paths=[str(_code(Path(scratch) / "coevo"))],
            pip_requirements=pins(package),
            signature=signature(),
            input_example=example(),
        )


def _code(into: Path) -> Path:
    """Copy coevo with only the agent's rooms; MLflow copies a whole folder under its own name."""
    for room in CODE:
        shutil.copytree(ROOT / room, into / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "__init__.py", into)
    return into


def register(
    store: TrackingStore, model: str, package: Package, placement: Placement, tags: Mapping[str, str]
) -> Registered:
    """Register a package as the next version of a model, which is created if missing.

    The package is recorded as one of the store's workspace first, see ``coevo.lineage.packages``.

    Args:
        store: MLflow's store.
        model: name of the model.
        package: package to register.
        placement: its experiment and MLflow run.
        tags: tags of the version.

    Raises:
        CoevoError: the package cannot be saved, or MLflow refuses it.
    """
    above = package.directory.parent  # with room for a model
    Packages(store.lock.parent).add(package.directory, package.origin.name)
    with TemporaryDirectory(dir=above) as scratch, reached(store, "does not take the model") as registry:
        directory = Path(scratch) / "model"
        save(package, directory)
        # Beside evaluated revisions, which are models of the same experiment: RUN-r20.
        name = re.sub(r"[^\w-]", "-", f"{package.origin.name.replace('@', '-r')}-package")
        logged = _logged(registry, name, placement, {**tags, MODEL: model})
        registry.log_model_artifacts(logged.model_id, str(directory))
        registry.finalize_logged_model(logged.model_id, "READY")
        _make(registry, model)
        # MLflow would look up ``models:/<id>``, and models without a run, in the default store instead of this one.
        linked = None if placement.run is None else logged.model_id
        where = logged.artifact_location
        about = f"Policy and bank of {package.origin.name} as one model; `coevo serve {model}/VERSION` answers with it."
        made = registry.create_model_version(
            model, where, placement.run, dict(tags), model_id=linked, description=about
        )
        return Registered(model, int(made.version))


def known(store: TrackingStore, model: str, tags: Mapping[str, str]) -> Registered | None:
    """The latest version of a model that has all of these tags, or None.

    Raises:
        CoevoError: MLflow does not answer.
    """
    with reached(store, "does not answer") as registry:
        versions = registry.search_model_versions(f"name='{model}'")
        found = [int(each.version) for each in versions if tags.items() <= each.tags.items()]
    return Registered(model, max(found)) if found else None


def find(store: TrackingStore, text: str) -> Registered:
    """The version named by ``MODEL/VERSION`` or ``MODEL@ALIAS``, with or without the prefix ``models:/``.

    Raises:
        CoevoError: the text has another form, or the version does not exist.
    """
    found = MENTION.fullmatch(text)
    if found is None:
        raise CoevoError(f"{text!r}: write MODEL/VERSION or MODEL@ALIAS, for example homerules-coevo-rl@champion")
    with reached(store, "does not answer") as registry:
        model = found["model"]
        versions = {int(each.version) for each in registry.search_model_versions(f"name='{model}'")}
        if not versions:
            packages = [each for each in registry.search_registered_models() if each.tags.get(KIND) != BANK]
            known = ", ".join(sorted(each.name for each in packages)) or "none"
            raise CoevoError(
                f"model {model!r} is not registered: registered are {known}; `coevo package` registers one"
            )
        there = registry.get_registered_model(model)
        if there.tags.get(KIND) == BANK:
            raise CoevoError(f"model {model!r} holds the bank of a run, no package: `coevo package` registers one")
        aliases = {name: int(number) for name, number in there.aliases.items()}
    number = int(found["version"]) if found["version"] else aliases.get(found["alias"])
    if number is None:
        has = ", ".join(sorted(aliases)) or "none; `coevo promote` makes a champion"
        raise CoevoError(f"model {model!r} has no alias {found['alias']!r}: it has {has}")
    if number not in versions:
        raise CoevoError(f"model {model!r} has no version {number}: it has {', '.join(map(str, sorted(versions)))}")
    return Registered(model, number)


def fetch(store: TrackingStore, registered: Registered, into: Path) -> Path:
    """Copy a registered model into a new directory; return its path.

    Raises:
        CoevoError: MLflow has no files of it, or names a place for them that is not a registry's.
    """
    import mlflow.artifacts

    into.mkdir(parents=True)
    with reached(store, f"does not give {registered.name}") as registry:
        source = registry.get_model_version_download_uri(registered.model, str(registered.version))
        check_location(store, source, f"the files of {registered.name}")
        found = mlflow.artifacts.download_artifacts(source, dst_path=str(into), tracking_uri=store.uri)
    return Path(found)


def packaged(model: Path) -> Package:
    """The package inside an MLflow model."""
    return Package(model / "artifacts" / ARTIFACT)


def pins(package: Package) -> list[str]:
    """Requirements of a package: this project's pins, else installed versions."""
    bank = package.config.bank
    embeds = bank is not None and "embedding" in bank.retrieval.model_dump_json()
    needed = requirements("train", "embedding") if embeds else requirements("train")
    return [f"{each.name}{each.specifier or '==' + version(each.name)}" for each in needed]


def _logged(registry: Any, name: str, placement: Placement, tags: Mapping[str, str]) -> Any:
    """The logged model that a killed attempt left without a version, else a new one."""
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
            registry.create_registered_model(
                model, description="Packages of coevo, policy and bank together; the alias champion is what is served."
            )
        except MlflowException:
            if not _exists(registry, model):  # another process may have made it meanwhile
                raise


def _exists(registry: Any, model: str) -> bool:
    return bool(registry.search_registered_models(f"name='{model}'", max_results=1))
