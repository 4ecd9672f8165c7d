"""Seconds that a language model takes for the questions of a writer; rough, like ``duration``."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from coevo.configs.bank.writer import (
    ModelContrastConfig,
    ModelEditorConfig,
    ModelExtremesConfig,
    ModelReflectionConfig,
    ModelSkillsConfig,
    ModelWriterConfig,
    OutsideWriterConfig,
)
from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig, FrozenWriterModelConfig, WriterModelConfig
from coevo.configs.rollout.rollout_config import EngineConfig
from coevo.configs.run_config import RunConfig
from coevo.models.capacity.devices import Machine
from coevo.models.capacity.iteration_time import decoding, generator
from coevo.models.capacity.model_shape import ModelShape
from coevo.models.writer_models.writer_model import BATCH
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.writer_model_memory import frozen_shape
from coevo.tasks.run.run_writer_model import writer_model_config

KINDS = 6
"""Kinds of tasks of an environment, as ALFWorld has; the writer of skills asks once for each."""
FRAME = 400
"""Tokens of a question without its attempts and notes."""
FLOAT32 = 4
"""Bytes of a weight whose products do not depend on the batch."""


@dataclass(frozen=True, slots=True)
class QuestionEstimate:
    """Questions of one firing, at most.

    Attributes:
        questions: their number.
        attempts: attempts that one of them shows.
    """

    questions: int
    attempts: int


def writing(config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, panels: float = 0.0) -> float:
    """Mean seconds per iteration that a run waits for its writer, whose answers are of full length.

    0 where nobody is asked, and where it cannot be known (``untimed``).

    Args:
        config: the run.
        machine: machine of the run.
        shape: shape of its policy.
        lengths: tokens of prompts and answers.
        panels: panels that an iteration evaluates, on average.
    """
    asked = asking(config)
    if config.bank is None or asked is None:
        return 0.0
    measured = config.evaluation
    firing, reflections, attempt = (
        _answered(config, machine, shape, lengths, each)
        for each in (asked, QuestionEstimate(min(measured.reflections, measured.tasks), 1), QuestionEstimate(1, 1))
    )
    return firing / config.bank.every + panels * (reflections + _attempts(config) * attempt)


def _answered(
    config: RunConfig, machine: Machine, shape: ModelShape, lengths: Lengths, asked: QuestionEstimate
) -> float:
    """Seconds until questions that are put at once are answered; no batch begins after ``model.seconds``."""
    writer_model = writer_model_config(config)
    model = _writer_model_shape(writer_model, config, shape)
    if writer_model is None or model is None or not asked.questions:
        return 0.0
    assert config.bank is not None and isinstance(config.bank.writer, ModelWriterConfig)
    needed = FRAME + asked.attempts * (lengths.longest + lengths.answer)
    prompt = min(needed, config.bank.writer.question_tokens, model.positions - 1)
    answer = min(writer_model.max_new_tokens, model.positions - prompt)
    engine = writer_model.engine if isinstance(writer_model, FrozenWriterModelConfig) else config.rollout.engine
    rounds = asked.questions if _one_by_one(model, engine) else ceil(asked.questions / BATCH)
    seconds = decoding(model, asked.questions / rounds, prompt, answer, *generator(engine, machine))
    return min(rounds * seconds, writer_model.seconds + seconds)


def _attempts(config: RunConfig) -> int:
    """Failed attempts of an evaluated panel that the writer may be asked about, each by itself (Discovery@k)."""
    return max(0, config.evaluation.discovery - 1) * config.evaluation.tasks


def untimed(config: RunConfig) -> Iterator[str]:
    """Notice of answers that the forecast does not time."""
    writer_model, asked = writer_model_config(config), asking(config)
    if config.bank is not None and writer_model is not None and isinstance(config.bank.writer, OutsideWriterConfig):
        yield f"the answers to bank.writer.type={config.bank.writer.type} are not in the time: it asks as it likes"
    if config.bank is None or writer_model is None or asked is None or not asked.questions:
        return
    held = min(config.evaluation.reflections, config.evaluation.tasks) + _attempts(config)
    aside = f" and up to {held} for each evaluated panel" if held else ""
    often = (
        f"up to {asked.questions} questions every {config.bank.every} iterations{aside}, none begun after "
        f"bank.writer.model.seconds={writer_model.seconds:g}"
    )
    if isinstance(writer_model, EndpointWriterModelConfig):
        yield f"the answers of {writer_model.model} at {writer_model.url} are not in the time: {often}"
    elif isinstance(writer_model, FrozenWriterModelConfig) and frozen_shape(writer_model, config.policy) is None:
        yield f"{writer_model.path} is not on this machine, so its answers are not in the time: {often}"


def asking(config: RunConfig) -> QuestionEstimate | None:
    """Questions of a firing; None where the writer is a rule, or there is none."""
    if config.bank is None:
        return None
    tasks, found = config.rollout.tasks * config.bank.every, None
    match config.bank.writer:
        case ModelContrastConfig() as writer:
            found = QuestionEstimate(min(writer.candidates, tasks), max(2, config.rollout.group_size))
        case ModelEditorConfig() as writer:
            new, kept = writer.trajectories or config.rollout.group_size, writer.successes
            found = QuestionEstimate(tasks, new + (config.bank.references if kept is None else kept))
        case ModelReflectionConfig() as writer:
            found = QuestionEstimate(tasks * config.rollout.group_size, 1 + (writer.induction == "pairwise"))
        case ModelExtremesConfig() as writer:
            found = QuestionEstimate(bool(writer.strategies) + bool(writer.warnings), writer.trajectories)
        case ModelSkillsConfig() as writer:
            found = QuestionEstimate(min(KINDS, tasks), writer.failures + 1)
    return found


def _writer_model_shape(
    writer_model: WriterModelConfig | None, config: RunConfig, policy: ModelShape
) -> ModelShape | None:
    if isinstance(writer_model, FrozenWriterModelConfig):
        return frozen_shape(writer_model, config.policy)
    return None if isinstance(writer_model, EndpointWriterModelConfig) else policy


def _one_by_one(model: ModelShape, engine: EngineConfig) -> bool:
    """Return True if the engine rounds, so that an answer would depend on the rest of its batch."""
    return engine.type == "transformers" and model.bytes < FLOAT32
