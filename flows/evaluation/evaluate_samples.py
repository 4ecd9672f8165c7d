"""Several samples of each task of a panel, with one bank or several side by side, for a policy from anywhere.

Replica 0 has the draws of every other evaluation with the same seed; further ones have a seed of their own each. Draws
do not depend on the bank, on the batch or on what else is in progress, so that banks are paired, and an evaluation that
was killed continues to the same results.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from coevo.configs.load.open_parts import open_parts
from coevo.configs.policy_config import EndpointPolicyConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import TransformersEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.flows.console.options import workspace_of
from coevo.flows.evaluation.evaluate_revision import ShownTo, experience_of
from coevo.flows.evaluation.evaluation_targets import ListedBank, Target, TargetSettings, opened
from coevo.flows.evaluation.panel_evaluation import BANKS, check_panel
from coevo.flows.evaluation.sample_results import EpisodeKey, ResultFile, calls_beside, episode_row, figures_of
from coevo.flows.evaluation.served_worker import ServedWorker
from coevo.flows.history.revision_reference import reading
from coevo.flows.servers.ray_cluster import use_cluster
from coevo.lineage.revision.code_version import code_of_run
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import FORMATS, read_entries
from coevo.memory.exchange.parquet_files import Readable
from coevo.models.endpoint_policy.call_ledger import OF_NOTHING, OF_RESULTS
from coevo.models.policy.language_model import Policy
from coevo.models.policy.tokenizers import check_promptable
from coevo.records.draws import extend, key, seed_of
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.tasks.play.play import Attempt, Playing
from coevo.tasks.play.retrieve import NOTHING, Experience, Retrieved
from coevo.tasks.publish.reporter import counting, in_stage
from coevo.tasks.run.assemble import open_engine, place_simulators, worker_with
from coevo.tasks.run.weight_digests import check_data
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import extras_named

CONCURRENCY = 64
"""Episodes in progress at a time, unless a user says otherwise."""
EXPENSE = ("budget", "price", "concurrency", "timeout", "retries", "seconds")
"""Settings of a policy behind an endpoint that decide what is paid, and when, and no answer."""
OF_TEXTS = ("tfidf", "bm25", "embedding", "tfidf+embedding", "bm25+embedding")
"""Retrievals that read the texts of entries alone, and no counters."""


@dataclass(frozen=True)
class SampleRequest:
    """Evaluation to carry out; only ``panel``, ``tasks``, ``banks`` and ``samples`` decide results.

    Attributes:
        panel: name of the panel; by default the first of the settings.
        tasks: number of its tasks; by default as in the settings.
        banks: ``own``, ``none``, ``random``, ``RUN[@N]``, or a file of entries; each task is played with each.
        samples: episodes per task and bank.
        concurrency: most episodes in progress.
        batch: most sequences that the embedded engine computes at once; by default as in the settings.
        output: file of results; None to keep none.
        resume: continue what the file holds.
    """

    panel: str | None = None
    tasks: int | None = None
    banks: Sequence[str] = ("own",)
    samples: int = 1
    concurrency: int = CONCURRENCY
    batch: int | None = None
    output: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class BankArm:
    """A bank that tasks are played with.

    Attributes:
        seen: experience in prompts.
        lessons: text of entries by id.
        digest: hash of its entries, and of the counters that its retrieval reads.
    """

    seen: Experience = NOTHING
    lessons: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class SampledPanel:
    """A panel, and what its episodes are played with.

    Attributes:
        target: the policy.
        env: the environment.
        panel: the tasks.
        arms: banks by name.
    """

    target: Target
    env: Environment[Any]
    panel: Panel
    arms: Mapping[str, BankArm]


@extras_named()
def evaluate_samples(
    text: str,
    settings: TargetSettings | None = None,
    request: SampleRequest | None = None,
    workspace: Workspace | Path | str | None = None,
) -> dict[str, Any]:
    """Play a panel, and return what was evaluated with its figures, as ``FILE.json`` holds it.

    Args:
        text: ``RUN[@N]``, a directory with a model, or the URL of a served agent.
        settings: environment and settings that the user gives; by default those of the target.
        request: what to play; by default each task of the target's first panel once.
        workspace: the workspace, or its directory.

    Raises:
        CoevoError: the target, the panel or a bank does not exist, something does not fit, or the file is not one of
            this evaluation.
    """
    settings, request = settings or TargetSettings(), request or SampleRequest()
    workspace = workspace if isinstance(workspace, Workspace) else workspace_of(workspace)
    _check(request)
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory(workspace.root))
        target = stack.enter_context(opened(text, settings, workspace, scratch))
        open_parts(target.config, "bank.retrieval")
        with in_stage("builds the environment"):
            use_cluster(target.config, workspace.root)
            env = stack.enter_context(closing(make(target.config.env)))
            place_simulators(target.config, env)
        if target.run is not None and target.run.config.env == target.config.env:
            check_data(target.run.manifest, target.config, env, target.run.name)
        name = request.panel or target.config.evaluation.panels[0]
        check_panel(env, name)
        panel = env.at(target.iteration).panel(name, request.tasks or target.config.evaluation.tasks)
        with in_stage("reads the banks"):
            arms = {bank: _arm(bank, target, env, panel, workspace) for bank in request.banks}
        question = _question(target, env, panel, arms, request)
        results = stack.enter_context(ResultFile(request.output, question).opened(request.resume))
        ids = [task.id for task in panel.tasks]
        order = [EpisodeKey(bank, task, n) for task in ids for n in range(request.samples) for bank in arms]
        if missing := [each for each in order if each not in results.ended]:
            _play(SampledPanel(target, env, panel, arms), missing, request, results, scratch)
        found = figures_of(results.ended, list(arms), ids, request.samples)
        results.finish(order, found)
        return {**question, **found}


def _check(request: SampleRequest) -> None:
    if request.resume and request.output is None:
        raise CoevoError("--resume continues a file: name it with --output")
    if request.output is not None and request.output.suffix != ".jsonl":
        raise CoevoError(f"--output {request.output}: results are JSON Lines: name a file that ends in .jsonl")
    twice = next((bank for bank in request.banks if request.banks.count(bank) > 1), None)
    if twice is not None:
        raise CoevoError(f"--bank {twice} is given twice: leave one out, and set --samples for more episodes")


def _arm(bank: str, target: Target, env: Environment[Any], panel: Panel, workspace: Workspace) -> BankArm:
    """A bank by its name."""
    if target.kind == "url":
        if bank != "own":
            raise CoevoError(f"--bank {bank}: a served agent has its own bank, and keeps it: leave the option out")
        if env.panel_bank(panel.name) is not None:
            raise CoevoError(
                f"{panel.name}: has entries of its own, and a served agent keeps its bank: choose another panel"
            )
        return BankArm()
    about = ShownTo(target.config, target.iteration)
    if bank == "random" and target.bank is None:
        raise CoevoError(f"--bank random: {target.name} has no bank of its own: choose another one")
    if bank in BANKS:
        return _shown(experience_of(target.bank, None, bank, about, env, panel), target.bank)
    if Path(bank).suffix.lower() in FORMATS:
        listed = ListedBank(list(read_entries(Path(bank)).rows.values()))
        return _shown(experience_of(None, listed, bank, about, env, panel), listed)
    with reading(bank, workspace) as other:
        stored = other.bank()
        return _shown(experience_of(None, stored, bank, about, env, panel), stored)


def _shown(seen: Experience, bank: Readable | None) -> BankArm:
    entries: list[Entry] = [] if seen is NOTHING or bank is None else bank.active()
    if isinstance(seen, Retrieved):  # a panel may have entries of its own
        entries = seen.index.library.entries
    lines = sorted(f"{json.dumps(row, sort_keys=True)}\n" for row in (*map(asdict, entries), *_counters(seen, bank)))
    return BankArm(seen, {each.id: each.strategy for each in entries}, sha256("".join(lines).encode()).hexdigest())


def _counters(seen: Experience, bank: Readable | None) -> Iterator[object]:
    """State of a bank that a retrieval reads beside the texts of its entries, as JSON values."""
    if not isinstance(seen, Retrieved) or seen.index.config.type in OF_TEXTS:
        return
    library = seen.index.library
    numbers = (library.utility.tolist(), library.visits.tolist(), library.usefulness.tolist())
    yield from zip([entry.id for entry in library.entries], *numbers, strict=True)
    if library.clusters is not None and bank is not None:
        yield from map(asdict, bank.clusters())


def _question(
    target: Target, env: Environment[Any], panel: Panel, arms: Mapping[str, BankArm], request: SampleRequest
) -> dict[str, Any]:
    """Everything that decides the results, as JSON values."""
    settings = target.config.model_dump(mode="json", exclude={"iterations", "update", "warmstart", "approval"})
    settings["rollout"]["engine"].pop("rows", None)  # the batch decides nothing
    if isinstance(target.config.policy, EndpointPolicyConfig):
        settings["policy"] = {name: value for name, value in settings["policy"].items() if name not in EXPENSE}
    return {
        "target": target.name,
        "revision": target.revision,
        "environment": env.name,
        "panel": panel.name,
        "panel_hash": panel.hash,
        "tasks": len(panel.tasks),
        "samples": request.samples,
        "banks": {bank: arm.digest for bank, arm in arms.items()},
        "digests": dict(target.digests),
        "settings": settings,
        **code_of_run(target.config).state(),
    }


def _play(
    sampled: SampledPanel, missing: Sequence[EpisodeKey], request: SampleRequest, results: ResultFile, scratch: Path
) -> None:
    """Play the episodes that are missing, and keep each as it ends."""
    target, arms, panel = sampled.target, sampled.arms, sampled.panel
    tasks, by_id = {task.id: task for task in panel.tasks}, dict[str, EpisodeKey]()

    def attempts(wanted: Sequence[EpisodeKey]) -> Iterator[Attempt]:
        for each in wanted:
            made = _attempt(each, tasks[each.task], arms[each.bank].seen, target, panel)
            by_id[made.id] = each
            yield made

    with ExitStack() as stack:
        with in_stage("loads the policy"):
            workers = list(_workers(target, sampled.env, missing, request, scratch, stack))
        stack.enter_context(in_stage(f"{target.name} evaluate"))
        counted = counting(f"{{over}} of {len(missing)} episodes are over")
        counted(over=0)

        def end(decode: Any, episode: Episode) -> None:
            bank = by_id.pop(episode.id).bank
            results.add(episode_row(bank, episode, arms[bank].lessons, decode))
            counted(over=1)

        for worker, wanted, decode in workers:
            worker.play_each(attempts(wanted), request.concurrency, partial(end, decode))


def _attempt(which: EpisodeKey, task: Task, seen: Experience, target: Target, panel: Panel) -> Attempt:
    draws = extend(key(replica_seed(target.config.seed, which.replica), "evaluate"), task.id)
    stage = f"evaluate-{panel.name}-{which.bank}"
    entries, step = seen.of_task(task), partial(seen.of_step, task)
    return Attempt(task, which.replica, entries, stage, target.revision, draws, step)


def replica_seed(seed: int, replica: int) -> int:
    """Seed of a replica's draws; that of the settings for the first, with which other evaluations are paired."""
    return seed if replica == 0 else seed_of(key(seed, "evaluate", "replica", replica)) % 2**31


def _workers(
    target: Target,
    env: Environment[Any],
    missing: Sequence[EpisodeKey],
    request: SampleRequest,
    scratch: Path,
    stack: ExitStack,
) -> Iterator[tuple[Playing, Sequence[EpisodeKey], Any]]:
    """Workers, what each plays, and how it decodes prompts; a served agent has one for each seed."""
    config = target.config
    if target.policy is None:
        for replica in sorted({each.replica for each in missing}):
            served = ServedWorker(env, target.name, replica_seed(config.seed, replica), config.rollout.max_turns)
            yield served, [each for each in missing if each.replica == replica], None
        return
    made = _engine(target, target.policy, _batched(config, request.batch), scratch, request.output)
    engine = stack.enter_context(closing(made))
    yield worker_with(config, env, engine), missing, engine.policy.tokenizer.decode


def _batched(config: RunConfig, batch: int | None) -> RunConfig:
    if batch is None:
        return config
    rollout, engine = config.rollout, config.rollout.engine
    changed_engine = engine.model_copy(update={"rows": batch})
    return config.model_copy(update={"rollout": rollout.model_copy(update={"engine": changed_engine})})


def _engine(target: Target, policy: Path, config: RunConfig, scratch: Path, output: Path | None) -> Any:
    """The engine, whose answers do not depend on their batch if it is in this process.

    Calls to an endpoint are beside the file of results, so that a resumed evaluation pays for no answer again, and
    within the same budget.
    """
    settings = config.rollout.engine
    is_embedded = isinstance(settings, TransformersEngineConfig) and not isinstance(config.policy, EndpointPolicyConfig)
    if target.kind == "directory" and isinstance(settings, TransformersEngineConfig):
        from coevo.models.engines.transformers.embedded_engine import TransformersEngine

        return TransformersEngine(_policy_in(policy, config), settings, config.rollout.sampling).settled()
    calls, remedies = (None, OF_NOTHING) if output is None else (calls_beside(output), OF_RESULTS)
    engine: Any = open_engine(config, policy, scratch / "engine", calls, remedies)
    return engine.settled() if is_embedded else engine


def _policy_in(folder: Path, config: RunConfig) -> Policy:
    """A policy from elsewhere, checked, in the precision of the settings or the one that its adapters name."""
    import torch

    from coevo.models.policy.policy import PRECISION
    from coevo.models.policy.sound import load_sound

    policy = load_sound(folder, config.policy)
    check_promptable(policy.tokenizer, str(folder))
    if isinstance(config.policy, PretrainedPolicyConfig) and not (folder / PRECISION).is_file():
        policy.model.to(getattr(torch, config.policy.dtype))
    return policy
