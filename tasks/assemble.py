"""Putting a run together: the parts that its configuration names, at the policy that it stands at."""

from pathlib import Path

from configs.errors import ConfigError
from configs.run import RunConfig
from envs.base import Environment
from memory.admission.base import admission_of
from memory.writers.base import writer_of
from models.context import Context
from models.engine import TransformersEngine
from models.policy import Policy, load
from models.trainer.client import Trainer
from records.task import key_by
from tasks.gate import episode_limits
from tasks.play import Player
from tasks.session import Parts


def assemble(config: RunConfig, env: Environment[object], policy: Path, trainer: Trainer | None) -> Parts:
    """The parts, with the policy in a directory."""
    loaded = load(policy)
    limits = episode_limits(config, env, loaded.model.config.max_position_embeddings)
    bank = config.bank
    writer = None if bank is None else writer_of(bank.writer, key_by(bank.key))
    admission = None if bank is None else admission_of(bank.admission)
    return Parts(env, player_of(config, env, loaded), trainer, writer, admission, limits)


def player_of(config: RunConfig, env: Environment[object], policy: Policy) -> Player:
    """A player of a policy under the run's prompt and sampling settings."""
    engine = TransformersEngine(policy, config.rollout.engine, config.rollout.sampling)
    return Player(env, Context(config.context, policy.tokenizer), engine, config.rollout.max_turns)


def check_panels(config: RunConfig, env: Environment[object]) -> None:
    """Make sure, before anything is trained, that what will be evaluated is there.

    Raises:
        ConfigError: the environment has no such panel.
    """
    evaluation = config.evaluation
    for name in (*evaluation.panels, *evaluation.final_panels):
        if name not in env.panels:
            raise ConfigError(f"evaluation.panels: {name!r} is no panel of {env.name}; it has {', '.join(env.panels)}")
