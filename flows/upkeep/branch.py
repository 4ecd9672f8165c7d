"""Rollback of a run to an earlier revision, and a branch: a new run that starts from a revision with changed settings.

A branch is built in a temporary folder and becomes a run by a rename, so that a kill leaves a complete run or none.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from coevo.configs.load.load import change, written
from coevo.configs.load.open_parts import open_parts
from coevo.configs.outside_part import outside_parts
from coevo.configs.run_config import RunConfig
from coevo.configs.trust_settings import Setting, chosen
from coevo.envs.registry import make
from coevo.flows.configure import resolved
from coevo.flows.history.revision_reference import Reading
from coevo.flows.upkeep.gc import versions_of
from coevo.flows.upkeep.publishing import publish_if_quick
from coevo.lineage.atomic_files import check_file_system
from coevo.lineage.lineage import Lineage
from coevo.lineage.lock import writer_lock
from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.revision.code_version import Code, changes, flat
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.trust import Trust, extend_path
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.table_retention import KeptVersions, copy
from coevo.tasks.publish.turn_figures import copy_turn_figures
from coevo.tasks.revision_artifacts import EPISODES, HELD_OUT
from coevo.tasks.run.run_writer_model import check_endpoints, writer_model_config
from coevo.utilities.errors import CoevoError

FIXED = {
    "recipe": "it only names the origin of the run",
    "env.type": "the policy has learned another environment",
    "policy.path": "adapters find their base model there; if the model has moved, link it to that place with `ln -s`",
    "policy": "its weights and words are those of the revision",
    "warmstart": "it happened before revision 0",
}
"""Settings that a branch cannot change, with reasons."""
FREE = tuple(f"policy.{name}" for name in ("budget", "price", "concurrency", "timeout", "retries", "seconds"))
"""Settings of a policy behind an endpoint that decide no answer."""


def branch(
    source: Reading, name: str, overrides: Sequence[str], workspace: Workspace, without: Collection[str] = ()
) -> tuple[Manifest, RunConfig]:
    """Make the run; return its first own revision, and its configuration.

    Artifacts in ``without`` are left out.

    Raises:
        CoevoError: the revision was dropped or lost its optimizer, the name is taken, or a branch cannot change a
            setting.
    """
    source.lineage.history.require(source.manifest.revision)
    config = continued(source, overrides, workspace.trust)
    with workspace.staged(name, config) as fresh, Lineage.open(fresh.lineage, workspace.cache) as lineage:
        # Again, now that gc can no longer run in between.
        source.lineage.history.require(source.manifest.revision)
        copy(source.paths.bank, fresh.bank, tables(source))
        lineage.branch(source.lineage, source.manifest.revision, without)
        copy_turn_figures(source.paths, fresh, source.manifest.revision)
        made = lineage.diverge(state(source.manifest, config), observed(source, name, Bank(fresh.bank)))
        workspace.trust.begin(name, own(source, config, workspace.trust))
    return made, config


def continued(source: Reading, overrides: Sequence[str], trust: Trust) -> RunConfig:
    """Configuration of the branch.

    Raises:
        CoevoError: an override is malformed, cannot change in a branch, names no key, or would import unconfirmed code.
    """
    settings = source.config.model_dump(mode="json")
    changed = change(settings, overrides)
    _check_fixed(flat(settings), flat(changed))
    config = written(changed, source=source.name)
    if writer_model_config(source.config) != writer_model_config(config):
        check_endpoints(config)
    _check_parts(source, config, trust)
    if source.config.env == config.env and config.evaluation.panels:
        return config
    trust.require(source.paths.name, source.config)
    found = resolved(config)
    if source.config.env != config.env:
        _check_words(source.config, config)
    return found


def _check_parts(source: Reading, config: RunConfig, trust: Trust) -> None:
    """Open the parts of other packages that the branch changes; those of its source wait for the branch's start."""
    before = list(outside_parts(source.config))
    changed = [part.setting for part in outside_parts(config) if part not in before]
    if changed:
        trust.require(source.paths.name, source.config)
        extend_path(config)
        open_parts(config, *changed)


def _check_fixed(before: Mapping[str, object], after: Mapping[str, object]) -> None:
    for key in sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)):
        fixed = next((setting for setting in FIXED if _is_in(key, setting)), None)
        if fixed is not None and not any(_is_in(key, setting) for setting in FREE):
            raise CoevoError(f"{key}: a branch cannot change it: {FIXED[fixed]}; start a new run instead")


def _is_in(key: str, setting: str) -> bool:
    return key == setting or key.startswith(f"{setting}.")


def own(source: Reading, config: RunConfig, trust: Trust) -> list[Setting]:
    """Confirmed settings of the branch: the user's overrides, and those that are confirmed in the source run."""
    inherited = [(each.name, each.value) for each in trust.open_questions(source.paths.name, source.config)]
    return [each for each in chosen(config) if (each.name, each.value) not in inherited]


def tables(source: Reading) -> KeptVersions:
    """Versions of the bank up to the revision that are still kept, by table."""
    kept = set(source.lineage.history.retained())
    revisions = [manifest for manifest in source.history if manifest.revision in kept]
    return versions_of(revisions, source.manifest.tables)


def state(start: Manifest, config: RunConfig) -> dict[str, object]:
    """Differences of the branch's first revision from its start, with the same code."""
    settings = config.model_dump(mode="json")
    # A bank that begins here has a writer that begins here.
    begins = start.state["config"]["bank"] is None and config.bank is not None
    return {
        "config": settings,
        "config_hash": config.digest(),
        "accepted_change": changes(start, settings, Code.of(start)),
        "fired": start.revision + 1 if begins else start.state["fired"],
        **_weights(start, settings),
    }


def _weights(start: Manifest, settings: Mapping[str, Any]) -> dict[str, object]:
    """Digests of the models whose settings stay; of another one, the branch's first session records its own."""
    before, now = flat(start.state["config"]), flat(settings)
    kept = start.state.get("weights", {})
    return {"weights": {name: kept[name] for name in kept if before.get(name) == now.get(name)}} if kept else {}


def observed(source: Reading, name: str, bank: Bank) -> Mapping[str, Any]:
    """Origin of the branch, and the versions of its tables."""
    origin = {"run": source.paths.name, "revision": source.manifest.revision}
    return {"run": name, "branched_from": origin, "tables": bank.versions()}


def _check_words(before: RunConfig, after: RunConfig) -> None:
    if after.policy.type != "scratch":
        return
    new = sorted(set(make(after.env).vocabulary) - set(make(before.env).vocabulary))
    if new:
        more = f" and {len(new) - 3} more" if len(new) > 3 else ""
        raise CoevoError(
            f"env: these settings use {', '.join(new[:3])}{more}, which the policy has no words for: "
            "start a new run instead"
        )


def restore(
    workspace: Workspace, paths: RunPaths, to: int, say: Callable[[str], object], without: Collection[str] = ()
) -> Manifest:
    """Make a revision with all state of an earlier one, ``say`` one line that describes it, and publish it.

    Returns its manifest.

    Artifacts in ``without`` are left out.

    If the last revision is such a rollback already, as after a kill, no revision is made.

    Raises:
        CoevoError: the revision does not exist, was dropped, lost its optimizer or is damaged, another process writes
            to the run, its cursor is wrong, or its file system lacks what runs need.
    """
    check_file_system(paths.root)
    with writer_lock(paths), Lineage.open(paths.lineage, workspace.cache) as lineage:
        Cursor(paths.published).check(lineage)
        bank = Bank(paths.bank)
        before = lineage.history.head()
        made = lineage.rollback(to, bank, without)
        kept = ", ".join(sorted(name for name in made.artifacts if name not in (EPISODES, HELD_OUT)))
        done = "Already rolled back" if made == before else "Rolled back"
        less = "".join(f" without its {artifact}" for artifact in without)
        holds = f"iteration {made.iteration}, {kept}, {bank.size()} entries"
        say(f"{done} to revision {to}{less}; recorded as {paths.name}@{made.revision} ({holds}).")
        publish_if_quick(workspace, paths, lineage, bank)
    return made
