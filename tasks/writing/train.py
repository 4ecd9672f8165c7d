"""Training of a small writer model on other worlds."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.rollout.rollout_config import TransformersEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.writer import AskFunction, Evidence, Writer, writer_of
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.policy import save
from coevo.models.writer_models.engine_writer_model import EngineWriterModel
from coevo.models.writer_models.student import student, train
from coevo.models.writer_models.writer_model import WriterModel, in_order, room_of
from coevo.records.draws import Key, extend, key
from coevo.records.task import BY_SCOPE, key_by
from coevo.records.writing import Question, Reply
from coevo.tasks.writing.teacher import TeacherAnswer, answered, expert_episodes
from coevo.utilities.errors import ConfigError

VOCABULARY_TASKS = 96
"""Tasks whose questions give the tokenizer its words."""
TASKS, REPLICAS = 32, 2
"""Tasks of the examination, and episodes of each task."""
NONE = References(BY_SCOPE, 0)


@dataclass(frozen=True, slots=True)
class Grade:
    """Result of an examination in a world that was not trained on.

    Attributes:
        proposed: number of lessons that the writer model wrote.
        true: number of them that are true notes of the world.
        revealed: number of true notes that the episodes of the questions reveal.
    """

    proposed: int
    true: int
    revealed: int


def train_writer_model(
    config: RunConfig, env: Environment[object], directory: Path, steps: int, tasks: int, note: Callable[[str], None]
) -> Grade:
    """Train a writer model for the writer of a configuration, and save it in a new directory.

    Args:
        config: configuration whose writer asks the writer model.
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
    asked, pool, base = bank.writer.model, key_by(bank.key), key(config.seed, "author")
    writer = writer_of(bank.writer, pool)

    def material(draw: Key, count: int) -> list[TeacherAnswer]:
        return answered(env, writer, pool, expert_episodes(env, env.probe(count, draw).tasks, REPLICAS, draw), draw)

    def progress(step: int, loss: float) -> None:
        note(f"writer model: step {step} of {steps}, loss {loss:.3f} nats per token")

    writer_model = student(material(extend(base, "words"), VOCABULARY_TASKS), extend(base, "weights"))
    writer_model = train(writer_model, lambda step: material(extend(base, "step", step), tasks), steps, progress)
    unfinished = directory.with_name(f".{directory.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    save(writer_model, unfinished)
    unfinished.rename(directory)
    engine = TransformersEngine(writer_model, TransformersEngineConfig(), config.rollout.sampling)
    return examine(env, writer, EngineWriterModel(asked, engine, {}, config.seed), extend(base, "exam"))


def examine(env: Environment[object], writer: Writer, writer_model: WriterModel, draw: Key) -> Grade:
    """Compare the lessons that a writer model writes in another world with its true notes."""
    played = expert_episodes(env, env.probe(TASKS, draw).tasks, REPLICAS, draw)
    shown = set[str]()

    def ask(questions: Sequence[Question]) -> list[Reply]:
        shown.update(name for question in questions for name in question.episodes)
        return in_order(writer_model, questions)

    evidence = Evidence(played, Library(()), NONE, 0, AskFunction(ask, partial(room_of, writer_model)))
    said = {entry.strategy for entry in writer.write(evidence).entries}
    # A writer does not ask about every episode.
    true = {found.note for each in played if each.id in shown for found in env.revealed(each)}
    return Grade(len(said), len(said & true), len(true))
