"""From a revision to a package, and to a version of a registered model."""

from pathlib import Path

from coevo.configs.trust_settings import chosen
from coevo.envs.registry import find as find_env
from coevo.flows.history import history
from coevo.flows.history.revision_reference import Reading, reading
from coevo.lineage.names import RUN
from coevo.lineage.revision.code_version import code_of
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace
from coevo.tasks.package.champion import ASKS
from coevo.tasks.package.model_registry import CODE, Registered, known, register
from coevo.tasks.package.package import Package, PackageOrigin, pack
from coevo.tasks.publish.catchup import tracker_of
from coevo.tasks.publish.mlflow.tracking_store import tracking_store
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.weight_digests import check_weights
from coevo.utilities.errors import CoevoError

PACKED_BY = "coevo.packed_by"
"""Tag of a version: revision of the code that it contains, which may differ from that of its run."""


def package(opened: Reading, into: Path) -> Package:
    """Write the package of a revision into a directory.

    Raises:
        CoevoError: the revision was dropped, or a part of it is missing.
    """
    manifest, state = opened.manifest, opened.manifest.state
    opened.lineage.history.require(manifest.revision)
    check_weights(manifest, opened.config, opened.paths.workspace.root, opened.name)
    last = history.evaluated(opened.history)
    panels = {} if last is None else last.state["panels"]
    origin = PackageOrigin(
        run=opened.paths.name,
        revision=manifest.revision,
        iteration=manifest.iteration,
        commit=opened.lineage.history.commit_hash(manifest.revision),
        config_hash=state["config_hash"],
        code=state["code"],
        evaluated=None if last is None else last.revision,
        success={} if last is None else {name: last.metrics[f"agent/success/{name}"] for name in panels},
        panels=panels,
    )
    with in_stage(f"packs policy and bank of {opened.name}"), scratch_directory(opened.paths.workspace.root) as scratch:
        policy = opened.lineage.artifacts.materialise(manifest.revision, "policy", scratch / "policy")
        return pack(into, policy, opened.bank() if opened.config.bank else None, opened.config, origin)


def register_revision(reference: str, model: str | None, workspace: Workspace) -> tuple[Registered, Package]:
    """Package ``RUN[@N]`` and register it as the next version of a model, by default named after the recipe.

    A revision that this code has packaged already keeps its version, so the command can be repeated after a kill.

    Raises:
        CoevoError: the revision does not exist, a setting is not confirmed, the name is not valid for a model, or
            MLflow refuses it.
    """
    with reading(reference, workspace) as opened, scratch_directory(workspace.root) as scratch:
        workspace.trust.demand(opened.paths.name, opened.config)
        name = opened.config.recipe if model is None else model
        if not RUN.fullmatch(name):
            raise CoevoError(f"{name!r} cannot name a model: use letters, digits, '.', '_' and '-', at most 100")
        made = package(opened, scratch / "package")
        asks = {} if opened.config.approval.promotion == "none" else {ASKS: opened.config.approval.promotion}
        store, wanted = tracking_store(workspace.root), tags(made.origin) | {PACKED_BY: code_of(*CODE)} | asks
        with in_stage("looks for the package in MLflow"):
            there = known(store, name, wanted)
        if there is not None:
            workspace.packages.add(made.directory, made.origin.name)
            return there, made
        with in_stage("opens the run's page in MLflow"):
            placement = tracker_of(workspace.root, opened.paths, find_env(opened.config.env.type).name).placement()
        with in_stage(f"registers the package as {name}"):
            registered = register(store, name, made, placement, wanted)
        workspace.trust.confirm(registered.name, chosen(opened.config))  # as they were for its run
        return registered, made


def tags(origin: PackageOrigin) -> dict[str, str]:
    """Tags of a version: its origin and its success."""
    known = {
        "run": origin.run,
        "revision": origin.revision,
        "iteration": origin.iteration,
        "commit": origin.commit,
        "config": origin.config_hash,
        "code": origin.code,
        "evaluated": origin.evaluated,
        **{f"success.{panel}": f"{success:.4f}" for panel, success in origin.success.items()},
        **{f"panel.{panel}": found for panel, found in origin.panels.items()},
    }
    return {f"coevo.{name}": str(value) for name, value in known.items() if value is not None}
