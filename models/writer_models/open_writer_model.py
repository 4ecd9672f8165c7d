"""Opening of the writer model that a configuration names."""

import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from coevo.configs.bank.writer_model_config import (
    AnyWriterModelConfig,
    EndpointWriterModelConfig,
    FrozenWriterModelConfig,
)
from coevo.configs.context_config import ContextConfig
from coevo.configs.rollout.engine_config import TransformersEngineConfig, VllmEngineConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.engines.requests import Engine
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.engines.vllm.vllm_engine import VllmEngine, check_there
from coevo.models.policy.foreign import absent, folder_of
from coevo.models.policy.policy import WEIGHTS, load, save
from coevo.models.policy.tokenizers import check_promptable
from coevo.models.writer_models.engine_writer_model import EngineWriterModel
from coevo.models.writer_models.writer_model import WriterModel
from coevo.records.writing import Question, QuestionRoom, Reply

SETTING = "bank.writer.model.path"


class FrozenWriterModel:
    """Writer model that loads its model, or starts its servers, at the first question.

    Args:
        config: model, engine and limits.
        template: options of the tokenizer's chat template.
        seed: root of the draws.
        directory: for the servers' files.

    Raises:
        CoevoError: the model is not on this machine, or there is no server and none can be started.
    """

    def __init__(
        self, config: FrozenWriterModelConfig, template: Mapping[str, Any], seed: int, directory: Path
    ) -> None:
        folder = folder_of(config.path)
        if folder is None:
            raise absent(config.path, SETTING)
        if isinstance(config.engine, VllmEngineConfig):
            check_there(config.engine, "bank.writer.model.engine")
        self._config, self._template, self._seed = config, template, seed
        self._folder, self._directory = folder, directory
        self._engine: Engine | None = None
        self._writer_model: EngineWriterModel | None = None

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question, as ``WriterModel.replies``.

        Raises:
            CoevoError: the model cannot be read, or a server not be started.
        """
        if questions:
            yield from self._opened().replies(questions)

    def room(self) -> QuestionRoom:
        """Room of a question, as ``Measuring.room``; the model is loaded for it."""
        return self._opened().room()

    def close(self) -> None:
        """Free the model, or end its servers."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._writer_model = None

    def _opened(self) -> EngineWriterModel:
        self._writer_model = self._writer_model or self._open()
        return self._writer_model

    def _open(self) -> EngineWriterModel:
        engine, sampling = self._config.engine, SamplingConfig(temperature=self._config.temperature)
        threads: int | None = None
        if isinstance(engine, VllmEngineConfig):
            self._engine = VllmEngine(self._in_one_file(), engine, sampling, self._directory)
        else:
            self._engine, threads = self._embedded(engine, sampling), engine.threads
        check_promptable(self._engine.policy.tokenizer, self._config.path, SETTING)
        return EngineWriterModel(self._config, self._engine, self._template, self._seed, threads)

    def _in_one_file(self) -> Path:
        """Directory of the model with its weights in one file, as servers are given them."""
        if (self._folder / WEIGHTS).is_file():
            return self._folder
        whole = self._directory / "model"
        shutil.rmtree(whole, ignore_errors=True)  # it may be of another model, or half written
        save(load(self._folder), whole)
        return whole

    def _embedded(self, config: TransformersEngineConfig, sampling: SamplingConfig) -> Engine:
        policy, threads = load(self._folder), torch.get_num_threads()
        policy.model.to(getattr(torch, self._config.dtype))
        try:
            return TransformersEngine(policy, config, sampling)
        finally:
            torch.set_num_threads(threads)  # the run's, which a new engine changes


def writer_model_of(
    config: AnyWriterModelConfig,
    engine: Engine,
    context: ContextConfig,
    seed: int,
    directory: Path,
    warn: Callable[[str], None],
) -> WriterModel:
    """Open a writer model, to be closed. A frozen model is loaded, and its servers are started, at the first question.

    Args:
        config: the writer model.
        engine: the run's engine, with the policy.
        context: prompt settings of the run; writer models use its options of the chat template.
        seed: root of the run's draws.
        directory: for the files of servers that the writer model starts.
        warn: function that gets a line of text when an endpoint accepts less than it was asked for.

    Raises:
        CoevoError: the longest answer leaves no room for a question, the model is not on this machine, or the
            environment has no key.
    """
    if isinstance(config, EndpointWriterModelConfig):
        # Its client takes a second to import.
        from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel

        return EndpointWriterModel(config, warn)
    if isinstance(config, FrozenWriterModelConfig):
        return FrozenWriterModel(config, context.template, seed, directory)
    return EngineWriterModel(config, engine, context.template, seed)
