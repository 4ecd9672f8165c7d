"""Whose policy ``coevo evaluate`` plays: a revision of a run, a directory with a model, or a served agent.

A directory of ``coevo export`` holds ``coevo.json``: the settings of prompts, answers, retrieval and environment that
its policy was trained under. It comes from elsewhere, so a setting that coevo would act on is refused: the user names
the environment instead.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from coevo.configs.load.load import change, compose, written
from coevo.configs.load.shipped_files import shipped
from coevo.configs.run_config import RunConfig
from coevo.configs.threads import with_threads
from coevo.configs.trust_settings import chosen
from coevo.flows.configure import resolved
from coevo.flows.history.revision_reference import WRITTEN, Reading, reading
from coevo.lineage.workspace import Workspace
from coevo.memory.clusters import Cluster
from coevo.memory.exchange.exchange import read_entries
from coevo.memory.exchange.parquet_files import Readable
from coevo.memory.stats import Stats
from coevo.records.entry import Entry
from coevo.tasks.run.weight_digests import check_weights, digests
from coevo.utilities.errors import CoevoError

SETTINGS, BANK = "coevo.json", "bank.jsonl"
"""Files of a directory that ``coevo export`` wrote."""
MAX_SETTINGS_BYTES = 2**20
"""Most bytes of the file of settings."""
SECTIONS = ("context", "rollout", "bank", "clusters", "seed", "env", "evaluation")
"""Sections of a run that an exported directory keeps."""
UNKNOWN_MODEL: Mapping[str, Any] = {
    "iterations": 0,
    "context": {"style": "conversation", "memory_length": None, "placement": "turn", "experience_tokens": 800},
    "rollout": {"sampling": {"max_new_tokens": 256}, "engine": {"type": "transformers", "rows": 16}},
}
"""Settings of a model about which nothing else is known: prompts as those of the recipes for pretrained models."""
TargetKind = Literal["run", "directory", "url", "model"]


@dataclass(frozen=True)
class TargetSettings:
    """Settings that a user gives with a target.

    Attributes:
        env: environment or recipe, for a served agent also ``RUN[@N]``; None for the target's own.
        overrides: settings as ``KEY=VALUE``.
    """

    env: str | None = None
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class ListedBank:
    """Entries without counters and clusters, as a file of entries has them."""

    entries: Sequence[Entry]

    def active(self) -> list[Entry]:
        """The entries, by id."""
        return sorted((entry for entry in self.entries if entry.active), key=lambda entry: entry.id)

    def stats(self) -> dict[str, Stats]:
        """No counters."""
        return {}

    def clusters(self) -> list[Cluster]:
        """No clusters."""
        return []


@dataclass(frozen=True)
class Target:
    """A policy that can be evaluated, with its settings.

    Attributes:
        kind: kind of the target.
        name: name for people: ``RUN@N``, a path or a URL.
        config: settings of its episodes.
        policy: directory of the policy; None for a served agent.
        bank: its own bank; None without one.
        iteration: iteration of the world that it plays in, and of the settings of retrieval that depend on it.
        revision: revision of the run; 0 for another target.
        digests: hash of each file or folder that decides its answers.
        run: the run, opened, of the policy or of a served agent's environment; None for another target.
    """

    kind: TargetKind
    name: str
    config: RunConfig
    policy: Path | None
    bank: Readable | None
    iteration: int
    revision: int
    digests: Mapping[str, str]
    run: Reading | None = None


def kind_of(text: str, workspace: Workspace) -> TargetKind:
    """Kind of target that a text names: a URL, a directory or a run.

    Raises:
        CoevoError: it names nothing, or two things.
    """
    if "://" in text:
        if urlsplit(text).scheme not in ("http", "https"):
            raise CoevoError(f"{text!r}: a served agent has a URL that begins with http:// or https://")
        return "url"
    folder, found = _is_directory(text), WRITTEN.fullmatch(text)
    if os.sep in text or text.startswith(("~", ".")):
        if not folder:
            raise CoevoError(f"{text[:200]}: no such directory: name one with a model in Hugging Face format, or a run")
        return "directory"
    run = found is not None and workspace.run(found["run"]).created.is_file()
    if run and folder:
        raise CoevoError(f"{text!r} names a run and a directory: write ./{text} for the directory, or rename it")
    if not run and not folder:
        missing = str(workspace.no_run(found["run"] if found else text))
        raise CoevoError(f"{missing}; no directory has this name either")
    return "run" if run else "directory"


def _is_directory(text: str) -> bool:
    """True for a directory; a text that cannot be a path is none."""
    try:
        return text != "" and Path(text).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):  # too long, not text of a file system, or of no user
        return False


@contextmanager
def opened(text: str, settings: TargetSettings, workspace: Workspace, scratch: Path) -> Iterator[Target]:
    """The target that a text names, for the block.

    Args:
        text: ``RUN[@N]``, a directory or a URL.
        settings: what the user sets.
        workspace: the workspace.
        scratch: directory for what has to be unpacked.

    Raises:
        CoevoError: it does not exist, is not what it should be, or a setting is not possible or not confirmed.
    """
    kind = kind_of(text, workspace)
    if kind == "run":
        with ExitStack() as stack:
            yield _of_run(stack.enter_context(reading(text, workspace)), settings, workspace, scratch)
    elif kind == "directory":
        yield _of_directory(Path(text).expanduser().absolute(), settings, workspace)
    else:
        if settings.env is None:
            raise CoevoError(f"{text}: which environment does it play? name one with --env")
        if any(each.startswith("policy.model=") for each in settings.overrides):
            model = _prepared(_composed(settings, {"policy": {"type": "endpoint", "url": text}}, {}))
            yield Target("model", text, model, scratch, None, 0, 0, digests(model, workspace.root))
            return
        if names_run(settings.env, workspace):
            with reading(settings.env, workspace) as run:
                yield _served_in(text, run, settings, workspace)
            return
        found = {"policy": {"type": "scratch"}, **_environment(settings.env)}
        config = _prepared(compose(["methods/react"], found, settings.overrides, "evaluate"))
        yield Target("url", text, config, None, None, 0, 0, {})


def names_run(env: str | None, workspace: Workspace) -> bool:
    """Report whether the environment that a user gives is that of a run, and not one by its own name."""
    found = None if env is None or env in (*shipped("recipes"), *shipped("envs")) else WRITTEN.fullmatch(env)
    return found is not None and workspace.run(found["run"]).created.is_file()


def _served_in(url: str, run: Reading, settings: TargetSettings, workspace: Workspace) -> Target:
    """A served agent in the environment of a run's revision, with its world, draws and turns."""
    manifest, config = run.manifest, run.config
    workspace.trust.demand(run.paths.name, config)
    check_weights(manifest, config, workspace.root, run.name)
    if settings.overrides:
        config = _prepared(written(change(config.model_dump(mode="json"), settings.overrides), run.name))
    config = config.model_copy(update={"bank": None})  # the agent has its own
    return Target("url", url, config, None, None, manifest.iteration, manifest.revision, {}, run)


def _of_run(run: Reading, settings: TargetSettings, workspace: Workspace, scratch: Path) -> Target:
    manifest, config = run.manifest, run.config
    workspace.trust.demand(run.paths.name, config)
    check_weights(manifest, config, workspace.root, run.name)
    if settings.env is not None or settings.overrides:
        config = _prepared(_changed(run.name, config, settings))
    policy = run.lineage.artifacts.materialise(manifest.revision, "policy", scratch / "policy")
    bank = None if config.bank is None or run.config.bank is None else run.bank()
    known = {"policy": str(manifest.artifacts["policy"]), **digests(config, workspace.root)}
    return Target("run", run.name, config, policy, bank, manifest.iteration, manifest.revision, known, run)


def _changed(name: str, config: RunConfig, settings: TargetSettings) -> RunConfig:
    """The run's settings with the user's: of another recipe, only the environment."""
    found = config.model_dump(mode="json")
    if settings.env is not None:
        found |= _environment(settings.env, config.python_path)
        found["evaluation"] |= {"panels": [], "final_panels": []}
    return written(change(found, settings.overrides), name)


def _of_directory(folder: Path, settings: TargetSettings, workspace: Workspace) -> Target:
    own = _exported(folder)
    if settings.env is None and "env" not in own:
        raise CoevoError(f"{folder}: which environment does it play? name one with --env, or a recipe")
    kept = {name: own[name] for name in SECTIONS if name in own and not (name == "env" and settings.env is not None)}
    if settings.env is not None and "evaluation" in kept:
        kept["evaluation"] |= {"panels": [], "final_panels": []}
    policy: dict[str, Any] = {"type": "pretrained", "path": str(folder)}
    policy |= {"dtype": own["dtype"]} if "dtype" in own else {}
    config = _composed(settings, {"policy": policy}, kept)
    _check_inert(folder, config, settings, _composed(settings, {"policy": policy}, {}) if settings.env else None)
    config = _prepared(config)
    bank = ListedBank(list(read_entries(folder / BANK).rows.values())) if (folder / BANK).is_file() else None
    iteration = own.get("iteration", 0)
    if type(iteration) is not int or iteration < 0:
        raise CoevoError(f"{folder / SETTINGS}: iteration = {str(iteration)[:40]!r}: it is a number from 0 on")
    return Target("directory", str(folder), config, folder, bank, iteration, 0, digests(config, workspace.root))


def _exported(folder: Path) -> dict[str, Any]:
    """Settings that ``coevo export`` wrote; empty without its file."""
    file = folder / SETTINGS
    if not file.is_file():
        return {}
    try:
        with file.open("rb") as opened_file:
            found = json.loads(opened_file.read(MAX_SETTINGS_BYTES))
    except (ValueError, RecursionError) as error:
        raise CoevoError(f"{file}: not readable as JSON ({str(error)[:80]}): export the run again") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(name, {}), dict) for name in ("env", "evaluation")):
        raise CoevoError(f"{file}: holds no settings of coevo: export the run again, or remove the file")
    return found


def _composed(settings: TargetSettings, policy: Mapping[str, Any], own: Mapping[str, Any]) -> RunConfig:
    """Settings of an unknown model in an environment, or those of a recipe, below its ``own`` and the user's."""
    bases, chosen_env = ([], {}) if settings.env is None else _bases(settings.env)
    recipe = any(not base.startswith("envs/") for base in bases)
    first = [] if recipe else ["methods/experience-only"]
    unknown = {} if recipe else dict(UNKNOWN_MODEL)
    return compose([*first, *bases], {**unknown, **chosen_env, **policy, **own}, settings.overrides, "evaluate")


def _bases(env: str) -> tuple[list[str], dict[str, Any]]:
    """Shipped files, or a recipe file, and settings that a user's name for an environment stands for."""
    if env.endswith((".yaml", ".yml")):
        return [env], {}
    for kind in ("recipes", "envs"):
        if env in shipped(kind):
            return [f"{kind}/{env}"], {}
    return [], {"env": {"type": env}}


def _environment(env: str, path: Sequence[str] = ()) -> dict[str, Any]:
    """Environment that a user names, of a recipe that alone, with the Python path that it needs."""
    bases, settings = _bases(env)
    if not any(base.startswith("recipes/") or base == env for base in bases):
        bases, settings = ["methods/react", *bases], {"policy": {"type": "scratch"}, **settings}
    config = compose(bases, settings, (), env)
    return {"env": config.env.model_dump(mode="json"), "python_path": [*path, *config.python_path]}


def _prepared(config: RunConfig) -> RunConfig:
    return with_threads(resolved(config))


def _check_inert(folder: Path, config: RunConfig, settings: TargetSettings, given: RunConfig | None) -> None:
    """Check that a directory from elsewhere sets nothing that coevo would act on.

    Args:
        folder: the directory.
        config: all settings.
        settings: what the user set.
        given: settings without the directory's own; None if the environment is its own.
    """
    theirs = {} if given is None else {each.name: each.value for each in chosen(given)}
    keys = ["policy.path", *(override.partition("=")[0] for override in settings.overrides)]
    for each in chosen(config):
        own = any(f"{each.name}.".startswith(f"{key}.") for key in keys)
        if not own and theirs.get(each.name) != each.value:
            raise CoevoError(
                f"{folder / SETTINGS} sets {each.name} = {str(each.value)[:80]!r}, and coevo {each.does}: set it "
                f"yourself, {each.name}=VALUE, or name the environment with --env"
            )
