"""Writer models: language models that answer a writer's questions, opened by ``coevo.models.writer_models``."""

import re
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from coevo.configs.base import MAX_FACTOR, MAX_PROCESSES, MAX_SECONDS, MAX_TOKENS, Config, FromAnywhere
from coevo.configs.rollout.rollout_config import EngineConfig, TransformersEngineConfig
from coevo.configs.trust_settings import Trusted

TOTAL = 10**15
"""Number of tokens of a whole run."""
TAKEN = ("model", "messages", "response_format", "stream", "n")
"""Fields of a request that coevo sets itself."""
NO_PROSE = (
    "bank.writer.model.type=policy needs a pretrained policy with context.style=chat or conversation, or "
    "bank.writer.form=words with steps and reflections=16 in warmstart: set bank.writer.model.type=endpoint or frozen"
)
"""Refusal of a word-level policy as writer model."""


def _check_endpoint_url(url: str) -> str:
    """Require an address of an endpoint that holds no secret. Raises ``ValueError``."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        good = False
    if not good or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError(f"{url!r} is not an address: set one such as https://api.openai.com/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "an address with a user, a query or a fragment may hold a secret: name an environment variable in key"
        )
    return url


def _check_key_name(key: str) -> str:
    """Require the name of an environment variable. Raises ``ValueError``."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", key):
        raise ValueError("not the name of an environment variable: set one that holds the key, as OPENAI_API_KEY")
    return key


EndpointUrl = Annotated[str, AfterValidator(_check_endpoint_url)]
"""Address of an endpoint, which holds no secret."""
KeyName = Annotated[str, AfterValidator(_check_key_name)]
"""Name of an environment variable with a key."""


class PriceConfig(Config):
    """Price of a million tokens, in any currency."""

    prompt: float = Field(ge=0, le=MAX_FACTOR)
    """Price of prompts."""
    answer: float = Field(ge=0, le=MAX_FACTOR)
    """Price of answers, their thinking included."""

    def of(self, prompt_tokens: int, answer_tokens: int) -> float:
        """Price of so many tokens, in its currency."""
        return (prompt_tokens * self.prompt + answer_tokens * self.answer) / 1_000_000


class BudgetConfig(Config):
    """Most that a model may use over the whole run."""

    tokens: int | None = Field(default=None, ge=1, le=TOTAL)
    """Tokens of prompts and answers together; null for no bound."""
    cost: float | None = Field(default=None, gt=0, le=MAX_FACTOR)
    """Cost by ``price``, in its currency; null for no bound."""


class SpendingConfig(Config):
    """Most that a model may use over the whole run, and its prices."""

    budget: BudgetConfig | None = None
    """Most that the model may use over the whole run; null for no bound."""
    price: PriceConfig | None = None
    """Price of its tokens; null if it costs nothing."""

    @model_validator(mode="after")
    def _priced(self) -> Self:
        cost = None if self.budget is None else self.budget.cost
        if cost is not None and self.price is None:
            raise ValueError(
                f"budget.cost={cost:g} needs prices to count with: set price={{prompt: 1.0, answer: 4.0}}, in the same "
                "currency per million tokens, or budget.tokens"
            )
        return self


class WriterModelConfig(SpendingConfig):
    """Base of the configuration of every writer model."""

    temperature: float = Field(default=0.7, gt=0, le=1000)
    """Divisor of the logits."""
    max_new_tokens: int = Field(default=1024, ge=1, le=MAX_TOKENS)
    """Maximum length of an answer in tokens, its thinking included."""
    seconds: float = Field(default=600.0, gt=0, le=MAX_SECONDS)
    """Seconds for all questions of one firing; one that is unanswered by then stays so."""


class PolicyWriterModelConfig(WriterModelConfig):
    """The run's own policy, in its engine."""

    type: Literal["policy"] = "policy"
    """Kind of writer model."""


class FrozenWriterModelConfig(WriterModelConfig):
    """A causal LM that the run does not train, in an engine of its own."""

    type: Literal["frozen"]
    """Kind of writer model."""
    path: Annotated[str, Trusted("loads the model there"), FromAnywhere]
    """Directory or hub name of model and tokenizer."""
    engine: EngineConfig = TransformersEngineConfig()
    """Generating engine."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the weights in this process, which answers questions one by one in ``bfloat16``; servers have
    ``engine.dtype``."""

    @model_validator(mode="after")
    def _here(self) -> Self:
        if self.engine.type == "vllm" and self.dtype != "float32":
            raise ValueError(f"dtype={self.dtype} is not that of servers: set engine.dtype={self.dtype}")
        return self


class EndpointAccess(Config):
    """An endpoint with OpenAI's chat completions API: a provider's, or a server of vLLM, llama.cpp or Ollama.

    Attributes:
        section: section of the run that names it, for messages.
    """

    section: ClassVar[str]
    url: Annotated[EndpointUrl, Trusted("sends episodes there")]
    """Address without ``/chat/completions``: ``https://api.openai.com/v1``, ``http://localhost:8000/v1``."""
    model: str = Field(min_length=1, max_length=200)
    """Name of the model at the endpoint."""
    key: Annotated[KeyName | None, Trusted("sends its value there")] = None
    """Name of the environment variable that holds the API key; null for an endpoint without keys."""
    context: int | None = Field(default=None, ge=256, le=MAX_TOKENS)
    """Context length of the model in tokens; null where it is not known: a writer model asks the endpoint for it, a
    policy takes every prompt to fit."""
    concurrency: int = Field(default=16, ge=1, le=MAX_PROCESSES)
    """Maximum number of requests that wait for an answer at once."""
    timeout: float = Field(default=120.0, gt=0, le=MAX_SECONDS)
    """Seconds without an answer after which a request is sent again."""
    retries: int = Field(default=4, ge=0, le=100)
    """Maximum number of times that a request is sent again after a failure, with growing pauses; an endpoint that
    asks to wait (429) is waited for as long as ``seconds`` allows."""
    extra: Annotated[dict[Annotated[str, Field(max_length=100)], JsonValue], Trusted("sends it there")] = Field(
        default={}, max_length=MAX_PROCESSES
    )
    """Further fields of each request, such as ``chat_template_kwargs``; a null leaves out one that coevo sends, such as
    ``temperature``, ``max_tokens`` or ``seed``."""

    @field_validator("extra")
    @classmethod
    def _free(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = next((name for name in extra if name in TAKEN), None)
        if taken is not None:
            raise ValueError(f"{taken} is set by coevo itself: name another field of the endpoint's requests")
        return extra


class EndpointWriterModelConfig(WriterModelConfig, EndpointAccess):
    """A model behind an endpoint."""

    section: ClassVar[str] = "bank.writer.model"
    type: Literal["endpoint"]
    """Kind of writer model."""
    temperature: float = Field(default=0.7, ge=0, le=1000)
    """Divisor of the logits; 0 takes the likeliest tokens."""
    constrain: Literal["auto", "schema", "json", "none"] = "auto"
    """Constraint of answers with a schema: ``schema``: by the schema; ``json``: to JSON; ``none``: by the prompt alone;
    ``auto``: the first of these that the endpoint accepts."""


AnyWriterModelConfig = Annotated[
    PolicyWriterModelConfig | FrozenWriterModelConfig | EndpointWriterModelConfig, Field(discriminator="type")
]
