"""Putting a run together: the parts that its configuration names, at the policy that it stands at."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from coevo.configs.env import EnvConfig
from coevo.configs.load.open_parts import open_parts
from coevo.configs.placement_config import EnginePool, RayPlacement, SharedPlacement, engine_pool
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.lineage.workspace import CALLS
from coevo.memory.admission.admission import admission_of
from coevo.memory.writers.writer import writer_of
from coevo.models.endpoint_policy.call_ledger import OF_A_RUN, CallRemedies
from coevo.models.engines.requests import Engine
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import Policy
from coevo.models.trainer.trainer_client import Trainer
from coevo.records.task import key_by
from coevo.tasks.iteration.held_out import episode_limits
from coevo.tasks.parts import Parts
from coevo.tasks.placement import launcher_of, resources_of
from coevo.tasks.play.play import RolloutWorker
from coevo.tasks.publish.reporter import in_stage, reporter
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.utilities.cluster.joined_cluster import joined
from coevo.utilities.errors import ConfigError


def assemble(
    config: RunConfig, env: Environment[object], engine: Engine, trainer: Trainer | None, writing: Writing | None
) -> Parts:
    """The parts, with the policy that an engine generates with."""
    limits = episode_limits(config, env, engine.policy.model.config.max_position_embeddings)
    bank = config.bank
    writer = None if bank is None else writer_of(bank.writer, key_by(bank.key))
    admission = None if bank is None else admission_of(bank.admission)
    return Parts(env, worker_with(config, env, engine), trainer, writer, admission, limits, writing)


def open_engine(
    config: RunConfig, policy: Path, directory: Path, calls: Path | None = None, remedies: CallRemedies = OF_A_RUN
) -> Engine:
    """The run's engine at the policy in a directory, to be closed.

    Args:
        config: settings of the run.
        policy: directory of the policy.
        directory: what the engine starts is kept there.
        calls: directory of the calls to the policy's endpoint; by default in ``directory``.
        remedies: how to go on after an error of the endpoint.

    Raises:
        CoevoError: the policy cannot be read or is nonsense, the engine not be started, or the policy's endpoint not be
            asked.
    """
    engine = config.rollout.engine
    if isinstance(config.policy, EndpointPolicyConfig):
        # Its client takes a second to import.
        from coevo.models.endpoint_policy.endpoint_engine import EndpointEngine

        calls = calls or directory / CALLS
        return EndpointEngine(config.policy, config.rollout.sampling, calls, reporter().warn, remedies)
    # A policy behind an endpoint does without PyTorch.
    from coevo.models.policy.sound import check_files, check_values, load_sound

    if isinstance(engine, VllmEngineConfig):
        from coevo.models.engines.vllm.engine_launch import ServerPlaces
        from coevo.models.engines.vllm.vllm_engine import VllmEngine

        sleeps = isinstance(config.placement, SharedPlacement)
        check_files(policy, config.policy)
        check_values(policy)
        pool = engine_pool(config.placement)
        places = ServerPlaces(launcher_of(config, pool), resources_of(pool or EnginePool()))
        return VllmEngine(policy, engine, config.rollout.sampling, directory, sleeps, places)
    from coevo.models.engines.transformers.embedded_engine import TransformersEngine

    return TransformersEngine(load_sound(policy, config.policy), engine, config.rollout.sampling)


def worker_with(config: RunConfig, env: Environment[object], engine: Engine) -> RolloutWorker:
    """A rollout worker under the run's prompt settings, at its pace."""
    context, rollout = Context(config.context, engine.policy.tokenizer), config.rollout
    return RolloutWorker(env, context, engine, rollout.max_turns, alone=rollout.pace == "episode")


def worker_of(config: RunConfig, env: Environment[object], policy: Policy) -> RolloutWorker:
    """A rollout worker of a policy in this process, under the run's settings of prompt and sampling."""
    from coevo.models.engines.transformers.embedded_engine import embedded_engine

    context, rollout = Context(config.context, policy.tokenizer), config.rollout
    return RolloutWorker(env, context, embedded_engine(policy, rollout), rollout.max_turns)


_built: ContextVar[tuple[EnvConfig, Environment[Any]] | None] = ContextVar("built", default=None)


@contextmanager
def environment_of(config: RunConfig) -> Iterator[Environment[Any]]:
    """The environment of a run inside the block, whose parts from other packages are open then.

    A block within that names the same environment shares it.

    Raises:
        CoevoError: it or a part cannot be built, or does not fit the settings of the run.
    """
    open_parts(config)
    outer = _built.get()
    if outer is not None and outer[0] == config.env:
        _check_environment(config, outer[1])
        yield outer[1]
        return
    with in_stage("builds the environment"):
        env = make(config.env)
        place_simulators(config, env)
    with closing(env):
        _check_environment(config, env)
        token = _built.set((config.env, env))
        try:
            yield env
        finally:
            _built.reset(token)


def place_simulators(config: RunConfig, env: Environment[Any]) -> None:
    """Let the simulators of an environment run on the cluster of the run's placement, which is joined when they start.

    Raises:
        ConfigError: the environment has none.
    """
    placement = config.placement
    if not isinstance(placement, RayPlacement) or placement.pools.environments is None:
        return
    from coevo.envs.stateful.cluster_workers import ClusterWorkers
    from coevo.envs.stateful.stateful_environment import StatefulEnvironment

    if not isinstance(env, StatefulEnvironment):
        raise ConfigError(
            f"placement.pools.environments places simulators, and {env.name} has none: it computes in this process; "
            "leave the pool out"
        )
    join = partial(joined, placement.address, placement.startup_timeout)
    env.workers = ClusterWorkers(
        join, placement.pools.environments, placement.startup_timeout, env, env.simulator, env.python
    )


def _check_environment(config: RunConfig, env: Environment[Any]) -> None:
    check_panels(config, env)
    check_repeats(config, env)
    check_warm_start(config, env)


def check_panels(config: RunConfig, env: Environment[object]) -> None:
    """Make sure, before anything is trained, that what will be evaluated is there.

    Raises:
        ConfigError: the environment has no such panel.
    """
    evaluation = config.evaluation
    if not evaluation.panels:
        raise ConfigError(f"evaluation.panels: names none; {env.name} has {', '.join(env.panels)}")
    for name in (*evaluation.panels, *evaluation.final_panels):
        if name not in env.panels:
            raise ConfigError(f"evaluation.panels: {name!r} is no panel of {env.name}; it has {', '.join(env.panels)}")


def check_repeats(config: RunConfig, env: Environment[object]) -> None:
    """Check that an environment which does not repeat is not used where its episodes are played again.

    Raises:
        ConfigError: it is.
    """
    admission = None if config.bank is None else config.bank.admission
    if not env.repeats and admission is not None and admission.needs_replay:
        raise ConfigError(
            f"bank.admission.type={admission.type} pairs episodes, but {env.name} does not repeat: set "
            "bank.admission.type=append"
        )
    retirement = None if config.bank is None else config.bank.retirement
    if not env.repeats and retirement is not None and retirement.entries:
        raise ConfigError(
            f"bank.retirement pairs episodes, but {env.name} does not repeat: set bank.retirement.entries=0"
        )
    if not env.repeats and config.rollout.turns is not None:
        raise ConfigError(
            f"rollout.turns plays unfinished episodes again, but {env.name} does not repeat: set rollout.turns=null"
        )


def check_warm_start(config: RunConfig, env: Environment[object]) -> None:
    """Check, before anything is made, that an environment has what a warm start is made from.

    Raises:
        MissingPartError: it lacks a part; with the remedy.
    """
    if config.warmstart is None or not config.warmstart.steps:
        return
    for part in ("demonstrations", "probe"):
        if getattr(type(env), part) is getattr(Environment, part):
            raise env.untaught(part)


def check_engine(config: RunConfig) -> None:
    """Make sure, before anything is trained, that what will generate is there.

    Raises:
        CoevoError: it is not.
    """
    if isinstance(config.rollout.engine, VllmEngineConfig):
        from coevo.models.engines.vllm.vllm_engine import check_there

        check_there(config.rollout.engine, here=engine_pool(config.placement) is None)
