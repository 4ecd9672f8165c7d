"""Writer models that generate with an engine: the run's own, or one of a frozen model; and opening of any kind."""

import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from coevo.configs.bank.writer_model_config import (
    AnyWriterModelConfig,
    EndpointWriterModelConfig,
    FrozenWriterModelConfig,
    WriterModelConfig,
)
from coevo.configs.context_config import ContextConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig, VllmEngineConfig
from coevo.models.answers.thinking import opens_thinking, without_thinking
from coevo.models.engines.requests import Charging, Engine, Request
from coevo.models.policy.foreign import absent, folder_of
from coevo.models.policy.tokenizers import check_promptable
from coevo.models.writer_models.prompt import Prompts
from coevo.models.writer_models.writer_model import BATCH, WriterModel, failed
from coevo.records.draws import key
from coevo.records.episode import Completion
from coevo.records.writing import Drawn, Question, QuestionRoom, Reply
from coevo.utilities.errors import CoevoError

BESIDE = 8
"""Tokens that the texts of a question may have more within the chat template than each by itself."""
EXACT = "torch.float32"
"""Precision in which an answer does not depend on the rest of its batch."""


class EngineWriterModel:
    """Writer model that generates with a view of an engine, which stays open.

    Args:
        config: sampling and limits.
        engine: engine of the model.
        template: options of the tokenizer's chat template.
        seed: root of the draws.
        threads: CPU threads per tensor operation; None for those of this process.

    Raises:
        CoevoError: the chat template cannot be used, or the longest answer leaves no room for a question.
    """

    def __init__(
        self,
        config: WriterModelConfig,
        engine: Engine,
        template: Mapping[str, Any],
        seed: int,
        threads: int | None = None,
    ) -> None:
        sampling = SamplingConfig(temperature=config.temperature, max_new_tokens=config.max_new_tokens)
        self._engine = engine.with_sampling(sampling)
        self._config, self._seed, self._threads = config, seed, threads
        # A resumed run asks what is left in other batches; servers repeat answers only up to that rounding anyway.
        self._size = 1 if _rounds(engine) else BATCH
        self._prompts = Prompts(engine.policy.tokenizer, template)
        self._thinks = opens_thinking(self._prompts.empty)
        _check_room(self._engine.longest_prompt, config.max_new_tokens)

    def replies(self, questions: Sequence[Question]) -> Generator[tuple[int, Reply]]:
        """Answer every question, as ``WriterModel.replies``.

        Equal questions get equal answers in every batch; those of servers may differ where they round otherwise.
        """
        until, fitting = monotonic() + self._config.seconds, dict[int, Request]()
        for index, question in enumerate(questions):
            request = self._request(question)
            if len(request.prompt_ids) <= self._engine.longest_prompt:
                fitting[index] = request
            else:
                yield index, self._overlong(request)
        places = list(fitting)
        for start in range(0, len(places), self._size):
            batch = places[start : start + self._size]
            yield from zip(batch, self._answer([fitting[index] for index in batch], until), strict=True)

    def room(self) -> QuestionRoom:
        """Room of a question beside the chat template, as ``Measuring.room``."""
        template = len(self._prompts.ids(Question("", "", (), "", "")))
        return QuestionRoom(self._engine.longest_prompt - template - BESIDE, self._prompts.size)

    def close(self) -> None:
        """Do nothing: the engine belongs to another."""

    def _request(self, question: Question) -> Request:
        return Request(self._prompts.ids(question), key(self._seed, "write", question.digest), question.digest)

    def _overlong(self, request: Request) -> Reply:
        length, most = len(request.prompt_ids), self._engine.longest_prompt
        return failed(
            f"the question has {length} tokens, and the model attends to {most} before an answer of "
            f"bank.writer.model.max_new_tokens={self._config.max_new_tokens}"
        )

    def _answer(self, requests: Sequence[Request], until: float) -> list[Reply]:
        if monotonic() > until:
            fault = f"no time was left of bank.writer.model.seconds={self._config.seconds:g}"
            return [failed(fault)] * len(requests)
        try:
            completions = self._generate(requests)
        except CoevoError as error:
            return [failed(str(error))] * len(requests)
        return list(map(self._reply, requests, completions))

    def _generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete a batch by itself, as a resumed run does, and keep nothing of its long prompts."""
        with _computing_with(self._threads):
            self._engine.forget()
            completions = self._engine.generate(requests)
            self._engine.forget()
        return completions

    def _reply(self, request: Request, completion: Completion) -> Reply:
        text = without_thinking(completion.text, self._thinks).text.strip()
        drawn = Drawn(tuple(request.prompt_ids), tuple(completion.token_ids))
        return Reply(text, completion.finished, len(drawn.prompt_ids), len(drawn.token_ids), drawn=drawn)


def _rounds(engine: Engine) -> bool:
    """True if the engine is in this process and an answer depends on its batch; one that is paid for never is."""
    if isinstance(engine, Charging):
        return False
    from coevo.models.engines.transformers.embedded_engine import TransformersEngine

    return isinstance(engine, TransformersEngine) and str(engine.policy.model.dtype) != EXACT


def _check_room(longest_prompt: int, answer: int) -> None:
    if longest_prompt < 1:
        raise CoevoError(
            f"bank.writer.model.max_new_tokens={answer} leaves no room for a question: the model attends to "
            f"{longest_prompt + answer} tokens; lower max_new_tokens"
        )


@contextmanager
def _computing_with(threads: int | None) -> Iterator[None]:
    """Compute with so many threads in the block, None for those of the process, which are the run's identity."""
    if threads is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
            from coevo.models.engines.vllm.vllm_engine import check_there

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
            from coevo.models.engines.vllm.vllm_engine import VllmEngine

            self._engine = VllmEngine(self._in_one_file(), engine, sampling, self._directory)
        else:
            self._engine, threads = self._embedded(engine, sampling), engine.threads
        check_promptable(self._engine.policy.tokenizer, self._config.path, SETTING)
        return EngineWriterModel(self._config, self._engine, self._template, self._seed, threads)

    def _in_one_file(self) -> Path:
        """Directory of the model with its weights in one file, as servers are given them."""
        from coevo.models.policy.policy import WEIGHTS, load, save

        if (self._folder / WEIGHTS).is_file():
            return self._folder
        whole = self._directory / "model"
        shutil.rmtree(whole, ignore_errors=True)  # it may be of another model, or half written
        save(load(self._folder), whole)
        return whole

    def _embedded(self, config: TransformersEngineConfig, sampling: SamplingConfig) -> Engine:
        import torch

        from coevo.models.engines.transformers.embedded_engine import TransformersEngine
        from coevo.models.policy.policy import load

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
