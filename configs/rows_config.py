"""A table of tasks: where it is, how it is split, and what rewards an answer."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from coevo.configs.bank.writer_model_config import EndpointUrl, KeyName
from coevo.configs.base import MAX_FACTOR, MAX_PROCESSES, MAX_SECONDS, MAX_SEED, Config, FromAnywhere, is_name
from coevo.configs.trust_settings import Trusted

REFERENCE = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
"""A function as ``package.module:function``."""
TRAIN = "train"
"""Value of the split column for the rows that train."""
DEMONSTRATION = "demonstration"
"""Value of the split column for the rows that a warm start shows."""
HELD_OUT = "held-out"
"""Panel of the rows that a keyed hash holds out."""

ColumnName = Annotated[str, Field(min_length=1, max_length=200)]
FunctionReference = Annotated[str, Field(pattern=REFERENCE, max_length=300)]


class RowRewardConfig(Config):
    """Base of the rewards of a table: a name, a weight, a range and a time limit."""

    name: str = Field(default="", max_length=60)
    """Name in the metrics, ``agent/rewards/PANEL/NAME``; by default that of the function, or ``judge``."""
    weight: float = Field(default=1.0, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Factor of its value in the reward."""
    low: float = Field(default=0.0, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Least value that it may return."""
    high: float = Field(default=1.0, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Largest value that it may return."""
    seconds: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    """Time limit of a call. Whoever exceeds it is stopped, and the episode is lost as an error of the environment."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low={self.low:g} is not below high={self.high:g}: set the range of its values")
        if self.weight == 0:
            raise ValueError("weight=0 rewards nothing: leave the reward out, or give it another weight")
        return self


class FunctionRewardConfig(RowRewardConfig):
    """A Python function that rewards an answer."""

    type: Literal["function"] = "function"
    """Kind of reward."""
    function: FunctionReference
    """``package.module:function``."""
    call: Literal["plain", "async", "batched"] = "plain"
    """``plain``: ``def f(answer, row) -> float``; ``async``: ``async def f(answer, row) -> float``, all of a batch are
    awaited together; ``batched``: ``def f(answers, rows) -> list[float]``."""

    @property
    def title(self) -> str:
        """Name of the reward."""
        return self.name or self.function.partition(":")[2]


class JudgeRewardConfig(RowRewardConfig):
    """A model at an endpoint of OpenAI's chat completions API, which answers with a number."""

    type: Literal["judge"]
    """Kind of reward."""
    url: EndpointUrl
    """Address without ``/chat/completions``."""
    model: str = Field(min_length=1, max_length=200)
    """Name of the model at the endpoint."""
    prompt: str = Field(min_length=1)
    """Question to it. ``{answer}`` is the answer, ``{COLUMN}`` a column of the row; ``{{`` and ``}}`` are braces."""
    key: KeyName | None = None
    """Name of the environment variable that holds the API key; null for an endpoint without keys."""
    max_tokens: int = Field(default=16, ge=1, le=100_000)
    """Maximum length of its reply, which must be a number and nothing else."""
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of each request, whose temperature is 0."""
    seconds: float = Field(default=60.0, gt=0, le=MAX_SECONDS)
    """Time limit of a question, its repetitions included."""
    retries: int = Field(default=2, ge=0, le=100)
    """Maximum number of times that a question is sent again after a failure."""
    concurrency: int = Field(default=8, ge=1, le=MAX_PROCESSES)
    """Maximum number of questions of one worker that wait for a reply at once."""

    @field_validator("prompt")
    @classmethod
    def _asking(cls, prompt: str) -> str:
        if "answer" not in columns_of(prompt):
            raise ValueError("does not hold {answer}: the judge would not see what it judges")
        return prompt

    @property
    def title(self) -> str:
        """Name of the reward."""
        return self.name or "judge"


RewardOfRows = Annotated[FunctionRewardConfig | JudgeRewardConfig, Field(discriminator="type")]


class SplitConfig(Config):
    """Base of what plays the rows of a table: their tasks in words, and which of them train."""

    prompt: ColumnName = "prompt"
    """Column with the task in words."""
    split: ColumnName | None = None
    """Column with the part that a row belongs to: ``train``, ``demonstration``, or the name of its panel; null holds
    rows out by a hash of their prompt."""
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of the rows in the panel ``held-out``, where there is no split column."""
    split_seed: int = Field(default=0, ge=0, le=MAX_SEED)
    """Seed of that hash."""
    scope: ColumnName | None = None
    """Column with the scope of a row: lessons can be restricted to it; null for one scope."""


class RowsConfig(SplitConfig):
    """A table of tasks with a reward function."""

    type: Literal["rows"] = "rows"
    """Name of the environment."""
    path: Annotated[str, Trusted("reads tasks there"), FromAnywhere] = Field(min_length=1)
    """File (.jsonl, .csv, .parquet), folder that ``Dataset.save_to_disk`` wrote, or ``package:file`` for a file of an
    installed package."""
    reward: Annotated[tuple[RewardOfRows, ...], Trusted("imports and calls it, and sends answers to its url")] = Field(
        max_length=64
    )
    """Rewards of an answer: ``package.module:function``, or a list of such functions and of their settings."""
    answer: ColumnName | None = None
    """Column with a right answer, which ``demonstration`` rows show and the check of rewards tries; null for none."""
    feedback: ColumnName | None = None
    """Column with the text that follows an answer, which lessons can quote; null shows the rewards."""
    optional: tuple[ColumnName, ...] = Field(default=(), max_length=MAX_PROCESSES)
    """Columns that a row may lack; all others that occur must be in each row."""
    success: float | None = Field(default=None, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Least reward of a success; null for the largest possible."""
    instructions: str = ""
    """Text for the system message: what an answer has to look like; by default, that the action is the answer."""
    tools: Annotated[tuple[FunctionReference, ...], Trusted("imports and calls them")] = Field(
        default=(), max_length=128
    )
    """Python functions that the policy may call, as ``package.module:function``, with type hints and docstrings; with
    tools, a call of ``answer`` ends an episode."""
    tool_seconds: float = Field(default=10.0, gt=0, le=MAX_SECONDS)
    """Time limit of a call of a tool. One that exceeds it is stopped, and its episode lost."""
    workers: int = Field(default=2, ge=1, le=MAX_PROCESSES)
    """Processes that call functions side by side, for each time limit. The results do not depend on it."""

    @field_validator("reward", mode="before")
    @classmethod
    def _listed(cls, reward: Any) -> Any:
        """One function, or its settings, as a list of settings."""
        every = reward if isinstance(reward, list | tuple) else [reward]
        return tuple(map(_settings, every))

    @field_validator("reward")
    @classmethod
    def _told_apart(cls, reward: tuple[RewardOfRows, ...]) -> tuple[RewardOfRows, ...]:
        titles = [each.title for each in reward]
        if not titles:
            raise ValueError("names no reward: set package.module:function")
        for title in titles:
            if not is_name(title):
                raise ValueError(f"name={title!r} is no name of a metric: use letters, digits, '.', '_' and '-'")
            if titles.count(title) > 1:
                raise ValueError(f"two rewards have the name {title!r}: set name in one of them")
        return reward

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        low, high = self.reward_range
        if self.success is not None and not low < self.success <= high:
            raise ValueError(
                f"success={self.success:g} is not above {low:g} and at most {high:g}, the range of rewards"
            )
        return self

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward of an answer, added up in the order of the list as rewards are."""
        ends = [sorted((each.weight * each.low, each.weight * each.high)) for each in self.reward]
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    @property
    def least(self) -> float:
        """Least reward of a success."""
        return self.reward_range[1] if self.success is None else self.success

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of all functions, sorted."""
        functions = [each.function for each in self.reward if isinstance(each, FunctionRewardConfig)]
        return tuple(sorted({each.partition(":")[0] for each in (*functions, *self.tools)}))


def _settings(reward: Any) -> Any:
    if isinstance(reward, str):
        return {"type": "function", "function": reward}
    return {"type": "function", **reward} if isinstance(reward, dict) else reward


PLACES = re.compile(r"\{\{|\}\}|\{[^{}]+\}|[{}]")
"""Braces of a judge's prompt: doubled, around a name, or stray."""


def columns_of(prompt: str) -> set[str]:
    """Names in the braces of a judge's prompt: columns, and ``answer``.

    Raises:
        ValueError: a brace stands alone.
    """
    found = PLACES.findall(prompt)
    if "{" in found or "}" in found:
        raise ValueError("a brace stands alone: write {COLUMN} for a column, {{ and }} for braces")
    return {each[1:-1] for each in found if each not in ("{{", "}}")}
