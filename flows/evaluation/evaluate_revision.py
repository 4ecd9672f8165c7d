"""Evaluation of any revision on any panel, with its own bank or another one. The run does not change."""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.load.load import validate
from coevo.configs.load.open_parts import open_parts
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.flows.evaluation.panel_evaluation import BANKS, Evaluation, EvaluationRequest, check_panel
from coevo.flows.history.played_episodes import keep_played
from coevo.flows.history.revision_reference import Reading, reading
from coevo.flows.history.stored_episodes import TRAINING, stored_episodes
from coevo.flows.run_environment import run_environment
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.workspace import Workspace
from coevo.memory.bank_state import BankState
from coevo.memory.clusters import Clusters
from coevo.memory.exchange.parquet_files import Readable
from coevo.memory.vendi_score import diversity
from coevo.memory.writers.writer import writer_of
from coevo.models.endpoint_policy.call_ledger import OF_NOTHING
from coevo.records.draws import key
from coevo.records.episode import played
from coevo.records.task import Panel, key_by
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.discovery_at_k import DiscoveryAgent, discover
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.play.retrieve import NOTHING, Experience, at_random, index_of, is_shown, recall
from coevo.tasks.publish.reporter import in_stage, reporter
from coevo.tasks.revision_artifacts import REFERENCES, references_of
from coevo.tasks.run.assemble import open_engine, worker_with
from coevo.tasks.run.run_writer_model import check_endpoints, open_writing, spent_before
from coevo.tasks.run.weight_digests import check_weights
from coevo.tasks.steps.evaluate import panel_index
from coevo.tasks.writing.artifact import FOLDER, KeptWriting, read_writing
from coevo.tasks.writing.ask_writer_model import Writing, aside_of
from coevo.tasks.writing.journal import Journal
from coevo.tasks.writing.spent import QuestionExpense
from coevo.utilities.errors import CoevoError


class ShownTo(NamedTuple):
    """Settings and iteration that decide which entries of a bank a policy is shown."""

    config: RunConfig
    """Settings of the policy."""
    iteration: int
    """Number of its updates."""
    without: tuple[str, ...] = ()
    """Ids of entries of its own bank that it is not shown."""


def evaluate_revision(reference: str, request: EvaluationRequest, workspace: Workspace) -> Evaluation:
    """Play a panel with the policy of ``RUN[@N]``.

    Args:
        reference: ``RUN``, ``RUN@N`` or ``RUN@TAG``.
        request: panel, tasks and bank.
        workspace: the workspace.

    Raises:
        CoevoError: the revision, panel or bank does not exist, a setting is not confirmed, or they do not fit.
    """
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory(workspace.root))
        run = stack.enter_context(reading(reference, workspace))
        workspace.trust.demand(run.paths.name, run.config)
        open_parts(run.config, "bank.retrieval", *(("bank.writer", "bank.admission") if request.discovery else ()))
        check_weights(run.manifest, run.config, workspace.root, run.name)
        other = None if request.bank in BANKS else stack.enter_context(reading(request.bank, workspace))
        config = configured(run, request)
        env = stack.enter_context(closing(run_environment(config, workspace.root, run)))
        iteration = run.manifest.iteration if request.iteration is None else request.iteration
        world, name = env.at(iteration), request.panel or config.evaluation.panels[0]
        panel = _panel(run, world, name, request.tasks or config.evaluation.tasks)
        with in_stage("reads the bank"):
            own = run.bank() if run.config.bank is not None or request.bank == "random" else None
            about = ShownTo(run.config, run.manifest.iteration, request.without)
            seen = experience_of(own, None if other is None else other.bank(), request.bank, about, env, panel)
        with in_stage("loads the policy"):
            policy = _artifact(run, "policy", scratch)
            engine = stack.enter_context(closing(open_engine(config, policy, scratch / "engine", remedies=OF_NOTHING)))
        worker = worker_with(config, env, engine)
        stack.enter_context(in_stage(f"r{run.manifest.revision} evaluate"))
        episodes = play_panel(worker, panel, seen, config.seed, run.manifest.revision)
        vendi = diversity(episodes, config.evaluation.encoder)
        if request.keeps:
            keep_played(run, panel.name, request.side if other is None else f"bank {other.name}", episodes)
        if not request.discovery:
            return Evaluation(panel, episodes, {}, vendi)
        start = bank_of(run if request.bank == "own" else other, config)
        journal = Journal(scratch / "writing.jsonl", run.manifest.revision)
        kept = KeptWriting(spent=_spent(run, scratch))
        opened = open_writing(config, engine, scratch / "writer_model", journal, kept, reporter().warn)
        learner = learner_at(run, start, worker, stack.enter_context(opened), scratch)
        shares, _ = discover(learner, panel, seen, episodes, request.discovery)
        return Evaluation(panel, episodes, shares, vendi)


def _panel(run: Reading, env: Environment[Any], name: str, tasks: int) -> Panel:
    """A panel of the environment, or the tasks of the revision's training episodes."""
    if name != TRAINING:
        check_panel(env, name)
        return env.panel(name, tasks)
    trained = {each.task.id: each.task for each, *_ in stored_episodes(run, training=True)}
    if not trained:
        raise CoevoError(f"{run.name} was trained on no episodes: choose a later revision")
    return Panel(TRAINING, str(run.manifest.revision), tuple(trained.values())[:tasks])


def evaluate_panels(reference: str, workspace: Workspace) -> list[Evaluation]:
    """Play the panels of a run's own evaluations with the policy and the bank of ``RUN[@N]``.

    Raises:
        CoevoError: the revision does not exist, a setting is not confirmed, or the environment lost all episodes.
    """
    with reading(reference, workspace) as run:
        panels = run.config.evaluation.panels
    found = [evaluate_revision(reference, EvaluationRequest(panel), workspace) for panel in panels]
    for each in found:
        if not played(each.episodes):
            raise CoevoError(f"{reference}: the environment lost all episodes of {each.panel.name}: evaluate it again")
    return found


def _spent(run: Reading, scratch: Path) -> QuestionExpense:
    """Expense of the run's writer model, which counts towards its budget here, too."""
    manifest = run.manifest
    if FOLDER not in manifest.artifacts:
        return QuestionExpense()
    own = read_writing(_artifact(run, FOLDER, scratch)).spent
    return spent_before(run.lineage, manifest, own, scratch, reporter().warn)


def configured(run: Reading, request: EvaluationRequest) -> RunConfig:
    """The run's configuration with the requested discovery.

    Raises:
        CoevoError: the two do not go together, or the writer model has no key here.
    """
    if request.discovery and request.bank == "random":
        raise CoevoError(
            "--discovery with --bank random: attempts after the first would look at the task: choose another bank"
        )
    settings = run.config.model_dump(mode="json")
    settings["evaluation"] |= {"discovery": request.discovery}
    config = validate(settings, source=run.name)
    if request.discovery:
        check_endpoints(config)
    return config


def experience_of(
    own: Readable | None, other: Readable | None, bank: str, about: ShownTo, env: Environment[object], panel: Panel
) -> Experience:
    """Experience at the first attempt at each task of a panel.

    Args:
        own: the bank of the policy; None without one.
        other: another bank; None for ``bank``.
        bank: one of ``BANKS``.
        about: settings of the policy, and its iteration.
        env: the environment.
        panel: tasks to attempt.
    """
    config, settings = about.config, about.config.bank
    retrieval = (settings or BankConfig()).retrieval
    if other is not None:
        return recall(index_of(other, config), key(config.seed, "evaluate"))
    if bank == "none":
        return NOTHING
    if bank == "random":
        entries = [] if own is None else own.active()
        return at_random(entries, retrieval.k, panel.tasks, key(config.seed, "random entries"))
    index = None if own is None or settings is None else index_of(own, config)
    if index is not None and own is not None and about.without:
        index = index.over((each for each in own.active() if each.id not in about.without), own.stats())
    if index is not None and not is_shown(retrieval, about.iteration, len(index.library)):
        index = None
    searched = index if panel.name == TRAINING else panel_index(env, panel.name, index, settings)
    return recall(searched, key(config.seed, "evaluate"))


def bank_of(owner: Reading | None, config: RunConfig) -> BankState:
    """A run's bank in memory; empty without a run, or if it has no bank."""
    if owner is not None and owner.config.bank is not None:
        return BankState.stored(owner.bank(), config.bank, config.clusters)
    return BankState(config.bank, clusters=None if config.clusters is None else Clusters(config.clusters, []))


def learner_at(
    run: Reading, start: BankState, worker: RolloutWorker, writing: Writing | None, scratch: Path
) -> DiscoveryAgent:
    """Learner from a revision."""
    config, manifest, bank = run.config, run.manifest, run.config.bank
    kept = _artifact(run, REFERENCES, scratch) if REFERENCES in manifest.artifacts else None
    return DiscoveryAgent(
        config,
        worker,
        writer=None if bank is None else writer_of(bank.writer, key_by(bank.key)),
        start=start,
        references=references_of(config, kept),
        ask=aside_of(writing, run.manifest.revision),
        revision=manifest.revision,
        iterations=manifest.iteration,
    )


def _artifact(run: Reading, name: str, scratch: Path) -> Path:
    return run.lineage.artifacts.materialise(run.manifest.revision, name, scratch / name)
