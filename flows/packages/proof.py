"""Packages from a registry, proven before they are loaded, played or promoted.

A registry is believed in nothing: whoever can write to it can replace a model's files, its tags and its aliases. A
package counts if its digest is that of a package which this workspace made (``coevo.lineage.packages``), or if a user
has confirmed this digest for this version by name. The same holds for settings of its configuration that can start a
program or import code.
"""

from collections.abc import Sequence
from pathlib import Path

from coevo.configs.load.open_parts import open_parts
from coevo.configs.trust_settings import Setting, chosen
from coevo.lineage.packages import package_digest
from coevo.lineage.trust import Consent, confirmed_before, extend_path
from coevo.lineage.workspace import Workspace
from coevo.tasks.package.model_registry import Registered, fetch, packaged
from coevo.tasks.package.package import Package
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore
from coevo.tasks.publish.reporter import in_stage

PACKAGE = "package"
"""Name of the digest among the settings of a version."""


def prove(
    store: TrackingStore,
    versions: Sequence[Registered],
    into: Path,
    workspace: Workspace,
    consent: Consent = confirmed_before,
) -> list[Package]:
    """Fetch versions, and require that each is proven or confirmed.

    Args:
        store: MLflow's store.
        versions: versions to fetch.
        into: existing directory, which gets one directory per version.
        workspace: the workspace.
        consent: called once with what has to be confirmed for each version.

    Returns:
        The package of each version, with ``python_path`` of its configuration added to Python's path.

    Raises:
        CoevoError: MLflow has no files of a version, they are not a package, or a part of it is not confirmed.
    """
    with in_stage(f"fetches {' and '.join(each.name for each in versions)} from MLflow"):
        packages = [packaged(fetch(store, each, into / str(each.version))) for each in versions]
    pairs = zip(versions, packages, strict=True)
    consent(
        workspace.trust,
        {each.name: [*_unproven(package, workspace), *chosen(package.config)] for each, package in pairs},
    )
    for package in packages:
        extend_path(package.config)
        open_parts(package.config, "bank.retrieval")
    return packages


def _unproven(package: Package, workspace: Workspace) -> list[Setting]:
    """The digest as a setting to confirm; empty if this workspace made the package."""
    digest = package_digest(package.directory)
    if workspace.packages.has(digest):
        return []
    return [Setting(PACKAGE, digest, "loads it, although no `coevo package` of this workspace made it")]
