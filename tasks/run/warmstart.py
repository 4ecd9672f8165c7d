"""The warm start: a policy that reads lessons, cloned once for each configuration and kept in the cache."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from filelock import FileLock

from coevo.configs.bank.writer import ModelReflectionConfig
from coevo.configs.policy_config import EndpointPolicyConfig, PretrainedPolicyConfig, WarmStartConfig
from coevo.configs.run_config import RunConfig, digest
from coevo.envs.base import Environment
from coevo.lineage.atomic_files import as_made, content_hash, hash_beside, write_atomically
from coevo.lineage.revision.code_version import code_of, packages
from coevo.memory.writers.model.words import CHOICES, PREDICTIONS, WORDS
from coevo.memory.writers.writer import writer_of
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.decoder import DESCRIPTION
from coevo.models.policy.foreign import folder_of
from coevo.models.policy.language_model import Policy
from coevo.models.writer_models.prompt import Prompts
from coevo.records.demonstration import Demonstration
from coevo.records.draws import extend, key
from coevo.records.entry import Entry, entry_id
from coevo.records.episode import played
from coevo.records.task import Task, key_by
from coevo.tasks.gates.environment_data import check_demonstrations
from coevo.tasks.play.episode_metrics import check_losses
from coevo.tasks.play.play import Attempt
from coevo.tasks.publish.reporter import Reporter, in_stage
from coevo.tasks.run.assemble import worker_of
from coevo.tasks.run.weight_digests import tables
from coevo.tasks.stage import stage
from coevo.tasks.writing.writer_training import Chance, answered, expert_episodes

if TYPE_CHECKING:
    from coevo.models.policy.cloning import Examples, ProbeResult, WarmStartReport

REPORT = "warmstart.json"
"""File with the reading probe of a warm-started policy."""
EXAMINED = range(-4, 0)
"""Steps whose reflections are never taught: the probe asks for them."""
METRICS = {
    "passed": "passed",
    "steps": "steps",
    "right": "success_true_lessons",
    "wrong": "success_false_lessons",
    "written": "reflections_as_taught",
}
"""Metric of each figure of the file, below ``policy/warmstart/``."""


@stage("initial policy")
def warm_start(config: RunConfig, env: Environment[object], cache: Path, reporter: Reporter) -> Path:
    """Directory of the policy that the run starts from; made where the cache does not hold it as it was made."""
    directory = cache / identity(config, env)
    _keep(directory, lambda unfinished: _make(config, env, unfinished, reporter), reporter)
    return directory


def adopt(policy: Path, directory: Path, reporter: Reporter) -> None:
    """Copy a warm-started policy from elsewhere to its place in the cache, where that does not hold it as it was."""
    _keep(directory, lambda unfinished: shutil.copytree(policy, unfinished), reporter)


def _keep(directory: Path, make: Callable[[Path], object], reporter: Reporter) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(directory.with_suffix(".lock")):
        if directory.is_dir() and not as_made(directory):
            reporter.warn(f"{directory} is not what {hash_beside(directory).name} says was made: it is made again")
            shutil.rmtree(directory)
        if not directory.is_dir():
            unfinished = directory.with_suffix(".part")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished)
            write_atomically(hash_beside(directory), content_hash(unfinished) + "\n")
            unfinished.rename(directory)


def identity(config: RunConfig, env: Environment[object]) -> str:
    """Hash of all that decides the policy that a run starts from.

    The code of an environment from elsewhere counts by its version, a pretrained model by its files.
    """
    parts = config.model_dump(mode="json", include={"seed", "env", "policy", "warmstart", "context"})
    code = code_of("utilities", "configs", "records", "envs", "models")
    if teaches(config) is not None:
        parts |= config.model_dump(mode="json", include={"bank": {"writer", "key"}})
        parts["writing_code"] = code_of("memory", "tasks")
    if config.rollout.engine.threads > 1:
        parts["threads"] = config.rollout.engine.threads
    if isinstance(config.policy, PretrainedPolicyConfig):
        parts["model"] = _files(folder_of(config.policy.path))
    parts |= tables(config)
    return digest({**parts, "env_version": env.version, "code": code, "torch": packages()["torch"]})[:16]


def _files(folder: Path | None) -> list[tuple[str, int, int]]:
    """Names, sizes and times of a model's files: another model at the same path is another start."""
    files = sorted(path for path in ([] if folder is None else folder.iterdir()) if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]


def start_metrics(directory: Path) -> dict[str, float]:
    """Metrics of a warm-started policy: its reading probe; empty if it was not cloned."""
    path = directory / REPORT
    report: dict[str, float] = json.loads(path.read_text()) if path.is_file() else {}
    return {f"policy/warmstart/{METRICS[name]}": value for name, value in report.items()}


def _make(config: RunConfig, env: Environment[object], directory: Path, reporter: Reporter) -> None:
    added = () if teaches(config) is None else WORDS
    words, draws = (*env.vocabulary, *CONTEXT_WORDS, *added), key(config.seed, "warmstart", "init")
    threads = config.rollout.engine.threads
    directory.mkdir(parents=True)
    if isinstance(config.policy, EndpointPolicyConfig):
        describe(config, config.policy, directory)
        return
    import torch

    from coevo.models.policy.apart import build_apart
    from coevo.models.policy.policy import build, save

    if config.rollout.engine.type == "vllm" and not (config.warmstart and config.warmstart.steps):
        build_apart(config.policy, words, draws, threads, directory)  # this process never holds a policy
        return
    torch.set_num_threads(threads)
    policy = build(config.policy, words, draws)
    if config.warmstart is not None and config.warmstart.steps > 0:
        with in_stage("warm start"):
            report = _clone(config, config.warmstart, env, policy, directory, reporter)
        (directory / REPORT).write_text(json.dumps(report.figures(), sort_keys=True))
    save(policy, directory)


def describe(config: RunConfig, policy: EndpointPolicyConfig, directory: Path) -> None:
    """Write what stands for the weights of a policy behind an endpoint in a revision: host, model and sampling."""
    directory.mkdir(parents=True, exist_ok=True)
    said = {
        "host": urlsplit(policy.url).netloc,
        "model": policy.model,
        "extra": policy.extra,
        "reuse": policy.reuse,
        "sampling": config.rollout.sampling.model_dump(mode="json"),
    }
    write_atomically(directory / DESCRIPTION, json.dumps(said, indent=1, sort_keys=True) + "\n")


def _clone(
    config: RunConfig, warm: WarmStartConfig, env: Environment[object], policy: Policy, directory: Path, to: Reporter
) -> "WarmStartReport":
    from coevo.models.policy.cloning import agreement, clone, demonstrated

    base = key(config.seed, "warmstart", "demonstrations")

    def material(step: int) -> list[Demonstration]:
        return env.demonstrations(warm.episodes, warm.drills, extend(base, step))

    check_demonstrations(material(0), directory.with_suffix(".quarantine"))
    context = Context(config.context, policy.tokenizer)
    more = reflections(config, env, policy.tokenizer)
    asked, free = [example for step in EXAMINED for example in more(step)], undetermined(warm, policy.tokenizer)

    def examples(step: int) -> "Examples":
        return [*demonstrated(context, material(step)), *more(step)]

    def examined(probed: Policy) -> "ProbeResult":
        found = probe(config, warm, env, probed)
        return replace(found, written=agreement(probed.model, asked, free)) if asked else found

    report = clone(policy, examples, examined, warm, to.note)
    if not report.passed:
        to.warn(f"after {report.steps} steps {shortfall(report.probe, warm)}; the run continues")
    return report


def shortfall(found: "ProbeResult", warm: WarmStartConfig) -> str:
    """Result of a probe that was not passed, beside its limits."""
    read = (
        f"the warm-started policy succeeds with {found.right:.2f} of right and {found.wrong:.2f} of wrong lessons, "
        f"against warmstart.read={warm.read} and margin={warm.margin}"
    )
    if found.written is None:
        return read
    return f"{read}, and gives {found.written:.2f} of its reflections as taught, against warmstart.write={warm.write}"


def probe(config: RunConfig, warm: WarmStartConfig, env: Environment[object], policy: Policy) -> "ProbeResult":
    """Success with lessons that hold and with lessons that do not, on tasks of a world that is never trained in."""
    from coevo.models.policy.cloning import ProbeResult

    base = key(config.seed, "probe")
    tasks = env.probe(warm.probe_tasks, base)
    worker = worker_of(config, env, policy)

    def success(lessons: Sequence[tuple[str, ...]]) -> float:
        attempts = [
            Attempt(task, 0, _entries(task, texts), "probe", 0, extend(base, task.id))
            for task, texts in zip(tasks.tasks, lessons, strict=True)
        ]
        episodes = worker.play(attempts)
        check_losses(episodes, config.rollout.lost_limit, "probe")
        episodes = played(episodes)
        return sum(episode.success for episode in episodes) / len(episodes)

    return ProbeResult(right=success(tasks.right), wrong=success(tasks.wrong) if tasks.wrong else 0.0)


def _entries(task: Task, texts: Sequence[str]) -> tuple[Entry, ...]:
    return tuple(Entry(entry_id(task.scope, text), text, "", "", "", task.scope, "probe", (), 0, 0) for text in texts)


def teaches(config: RunConfig) -> ModelReflectionConfig | None:
    """Writer whose questions the warm start teaches; None if it teaches none."""
    writer, warm = None if config.bank is None else config.bank.writer, config.warmstart
    asks = warm is not None and warm.reflections > 0
    return writer if asks and isinstance(writer, ModelReflectionConfig) else None


def reflections(config: RunConfig, env: Environment[object], tokenizer: Any) -> "Callable[[int], Examples]":
    """Function that returns answered questions of a step, in token ids, each step's about another world."""
    asked, warm, bank = teaches(config), config.warmstart, config.bank
    if asked is None or warm is None or bank is None:
        return lambda step: ()
    pool, base = key_by(bank.key), key(config.seed, "warmstart", "reflections")
    writer, prompts, count = writer_of(asked, pool), Prompts(tokenizer, config.context.template), warm.reflections
    chance = Chance(warm.predictions == "random", warm.lessons, warm.asides)

    def examples(step: int) -> "Examples":
        draw = extend(base, step)
        played = expert_episodes(env, env.probe(count, draw).tasks, 1, draw)
        found = answered(env, writer, pool, played, draw, chance)
        return [(prompts.ids(question), prompts.target(answer)) for question, answer in found]

    return examples


def undetermined(warm: WarmStartConfig, tokenizer: Any) -> list[int]:
    """Ids of the tokens of a taught answer that its teacher draws: predictions, and which steps have a line.

    All other tokens of a line follow from its step. Steps and counts of subtasks have the same tokens, so that the
    counts are left out with the steps.
    """
    guesses = PREDICTIONS if warm.predictions == "random" else ()
    steps = (*CHOICES, tokenizer.eos_token) if warm.lessons < 1 or warm.asides else ()
    found: list[int] = tokenizer.convert_tokens_to_ids([*guesses, *steps])
    return found
