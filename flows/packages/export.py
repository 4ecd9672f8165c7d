"""Export of a revision for the tools of others: the policy in Hugging Face format, or as PEFT adapters, and its bank.

<directory>/                   what ``transformers`` or ``peft`` load: weights as safetensors, settings, tokenizer
<directory>/bank.jsonl         the active entries, as ``coevo bank export`` writes them
<directory>/SKILL.md           the same for agents and people, a section per scope
<directory>/README.md          a model card
<directory>/coevo.json         settings of prompts, answers, retrieval and environment, for ``coevo evaluate``
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from coevo.configs.policy_config import EndpointPolicyConfig, PretrainedPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.flows.evaluation.evaluation_targets import BANK, SECTIONS, SETTINGS
from coevo.flows.history.revision_reference import Reading, reading
from coevo.flows.packages.export_texts import model_card, skill
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import write_entries
from coevo.models.policy.sound import load_sound
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.run.weight_digests import check_weights
from coevo.utilities.errors import CoevoError

SKILL, CARD = "SKILL.md", "README.md"


def export(reference: str, directory: Path, workspace: Workspace) -> str:
    """Write ``RUN[@N]`` into a new or empty directory, and return its name; the directory is whole or not there.

    Raises:
        CoevoError: the revision does not exist or was dropped, a setting is not confirmed, its policy is nonsense or
            behind an endpoint, or the directory holds something.
    """
    with reading(reference, workspace) as run, scratch_directory(workspace.root) as scratch:
        workspace.trust.demand(run.paths.name, run.config)
        run.lineage.history.require(run.manifest.revision)
        if isinstance(run.config.policy, EndpointPolicyConfig):
            raise CoevoError(
                f"{run.name}: policy.type=endpoint has no weights to export, they are at {run.config.policy.url}: give "
                "the bank away with `coevo bank export`"
            )
        check_weights(run.manifest, run.config, workspace.root, run.name)
        with new_directory(directory.absolute()) as made, in_stage(f"exports {run.name}"):
            kept = run.lineage.artifacts.materialise(run.manifest.revision, "policy", scratch / "policy")
            shutil.copytree(kept, made, dirs_exist_ok=True, copy_function=_copy)
            load_sound(made, run.config.policy)
            _write_texts(run, made)
        return run.name


def _copy(source: str, target: str) -> None:
    """Copy a file of the cache, which nobody may change, as one that its owner may."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o644)


def _write_texts(run: Reading, made: Path) -> None:
    bank = None if run.config.bank is None else run.bank()
    entries = [] if bank is None else bank.active()
    if bank is not None and entries:
        write_entries(entries, made / BANK)
        judged = [each.verdict for each in bank.judged()]
        (made / SKILL).write_text(skill(run, entries, bank.stats(), judged), encoding="utf-8")
    (made / CARD).write_text(model_card(run, len(entries)), encoding="utf-8")
    (made / SETTINGS).write_text(json.dumps(_settings(run), indent=1) + "\n", encoding="utf-8")


def _settings(run: Reading) -> dict[str, Any]:
    """Settings that an evaluation elsewhere needs, without what only training reads."""
    config: RunConfig = run.config
    found = config.model_dump(mode="json")
    kept = {name: found[name] for name in SECTIONS if found.get(name) is not None}
    rollout = found["rollout"]
    kept["rollout"] = {name: rollout[name] for name in ("sampling", "max_turns")}
    if rollout["engine"].get("type") == "transformers":
        kept["rollout"]["engine"] = rollout["engine"]
    if config.bank is not None:
        kept["bank"] = {name: found["bank"][name] for name in ("key", "retrieval")}
    kept["evaluation"] = {name: found["evaluation"][name] for name in ("panels", "tasks")}
    dtype = config.policy.dtype if isinstance(config.policy, PretrainedPolicyConfig) else "float32"
    return {"origin": run.name, "iteration": run.manifest.iteration, "dtype": dtype, **kept}


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """Directory to fill in the block, which gets its name at the end; a failure leaves nothing behind.

    What a killed process left is removed when the same directory is made again.

    Raises:
        CoevoError: something is there, it cannot be written, or another process makes it.
    """
    if directory.is_symlink() or (directory.exists() and not (directory.is_dir() and not any(directory.iterdir()))):
        raise CoevoError(f"{directory} is not empty: name a new or an empty directory")
    fresh = directory.with_name(f".{directory.name}.part")
    try:
        fresh.mkdir(parents=True, exist_ok=True)
        handle = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise CoevoError(f"{directory}: {error.strerror}: name a directory that can be written") from None
    try:
        _take(handle, directory)
        _empty(fresh)
        yield fresh
        _sync(fresh)
        fresh.rename(directory)
    except OSError as error:
        raise CoevoError(f"{directory}: {error.strerror}: name a directory that can be written") from None
    finally:
        with suppress(CoevoError):
            _take(handle, directory)
            shutil.rmtree(fresh, ignore_errors=True)
        os.close(handle)


def _take(handle: int, directory: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CoevoError(f"{directory}: another process writes it: wait for it, or name another directory") from None


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _sync(folder: Path) -> None:
    """Let every file reach the disk before its directory gets its name."""
    for path in (*(each for each in folder.rglob("*") if each.is_file()), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
