"""Training of a small author on other worlds."""

import shutil
from collections.abc import Callable
from pathlib import Path

from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.rollout.engine_config import TransformersEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.memory.writers.writer import writer_of
from coevo.models.authors.engine_author import EngineAuthor
from coevo.models.authors.student import student, train
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.policy import save
from coevo.records.draws import Key, extend, key
from coevo.records.task import key_by
from coevo.tasks.writing.exam import REPLICAS, Grade, examine
from coevo.tasks.writing.teacher import TeacherAnswer, answered
from coevo.utilities.errors import ConfigError

VOCABULARY_TASKS = 96
"""Tasks whose questions give the tokenizer its words."""


def train_author(
    config: RunConfig, env: Environment[object], directory: Path, steps: int, tasks: int, note: Callable[[str], None]
) -> Grade:
    """Train an author for the writer of a configuration, and save it in a new directory.

    Args:
        config: configuration whose writer asks the author.
        env: its environment.
        directory: target directory.
        steps: number of optimizer steps.
        tasks: number of tasks per step, each of another world, with two episodes.
        note: reports progress.

    Raises:
        ConfigError: the writer asks no model, or the environment does not know what its episodes reveal.
    """
    bank = config.bank
    if bank is None or not isinstance(bank.writer, ModelWriterConfig):
        raise ConfigError("no writer of this recipe asks a model: set bank.writer.type=model-contrast")
    asked, pool, base = bank.writer.author, key_by(bank.key), key(config.seed, "author")
    writer = writer_of(bank.writer, pool)

    def material(draw: Key, count: int) -> list[TeacherAnswer]:
        return answered(env, writer, pool, env.probe(count, draw).tasks, REPLICAS, draw)

    def progress(step: int, loss: float) -> None:
        note(f"author: step {step} of {steps}, loss {loss:.3f} nats per token")

    author = student(material(extend(base, "words"), VOCABULARY_TASKS), extend(base, "weights"))
    author = train(author, lambda step: material(extend(base, "step", step), tasks), steps, progress)
    unfinished = directory.with_name(f".{directory.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    save(author, unfinished)
    unfinished.rename(directory)
    engine = TransformersEngine(author, TransformersEngineConfig(), config.rollout.sampling)
    return examine(env, writer, EngineAuthor(asked, engine, {}, config.seed), extend(base, "exam"))
