"""Interface of every engine: requests, completions and limits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.policy.language_model import Policy
from coevo.records.draws import Key
from coevo.records.episode import Completion
from coevo.utilities.errors import CoevoError


@dataclass(frozen=True, slots=True)
class Request:
    """Request for one completion.

    Attributes:
        prompt_ids: token ids of the prompt, at least one.
        key: root of the row's draws.
        group: requests of one group share the head of their prompts.
    """

    prompt_ids: tuple[int, ...]
    key: Key
    group: str


class Engine(Protocol):
    """Generator of completions: one per request, in order.

    Attributes:
        policy: model and tokenizer that it generates with.
    """

    policy: Policy

    @property
    def longest_prompt(self) -> int:
        """Most tokens of a prompt that leave room for the longest answer."""
        ...

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt.

        Servers also take a single request from each of several threads at once (``rollout.pace=episode``).
        """
        ...

    def load(self, policy: Path) -> dict[str, float]:
        """Generate with the weights of this policy from now on; return metrics of the machine, by their names."""
        ...

    def with_sampling(self, sampling: SamplingConfig) -> "Engine":
        """View of this engine with another sampling: the same weights and servers, which this engine loads and ends."""
        ...

    def forget(self) -> None:
        """Drop everything from earlier calls, since a resumed run has none of it."""
        ...

    def close(self) -> None:
        """End everything that the engine has started."""
        ...


TokenListener = Callable[[int, int], bool]
"""Gets the number and the id of each token of an answer once it is drawn; False ends the answer behind it.

An answer that is drawn again begins again with number 0.
"""


@runtime_checkable
class Incremental(Protocol):
    """Engine whose tokens are known as they are drawn."""

    def generate_to(self, requests: Sequence[Request], listeners: Sequence[TokenListener | None]) -> list[Completion]:
        """Complete every prompt, as ``generate``; each answer has a listener, or None."""
        ...


@runtime_checkable
class Charging(Protocol):
    """Engine whose completions are paid for."""

    def raise_to(self, rates: Mapping[str, float]) -> None:
        """Count at least the expense of the run that a revision's rates state."""
        ...

    def expense(self) -> dict[str, float]:
        """Expense since the last call and of the run so far, by name of the metric."""
        ...


def expense_of(engine: Engine) -> dict[str, float]:
    """Expense of an engine since the last call, by name of the metric; empty for one that costs nothing."""
    return engine.expense() if isinstance(engine, Charging) else {}


def check_lengths(requests: Sequence[Request], answer: int, limit: int) -> None:
    """Check that every prompt and an answer of ``answer`` tokens fit into the policy's limit.

    Raises:
        CoevoError: one does not.
    """
    longest = max((len(request.prompt_ids) for request in requests), default=0) + answer
    if longest > limit:
        raise CoevoError(
            f"prompt and answer have {longest} tokens, but the policy attends to {limit}: "
            "lower context.experience_tokens or context.memory_length, set context.observation_tokens, or choose a "
            "longer policy"
        )


def completions_of(
    tokenizer: Any, ends: Iterable[int], drawn: Sequence[Sequence[tuple[int, float]]]
) -> list[Completion]:
    """Completions from drawn token ids with their log-probs.

    Texts keep control tokens that mean something in an answer, such as the marks of a tool call.
    """
    if not drawn:
        return []  # the tokenizer would decode an empty batch to one empty text
    tokens, last = [tuple(token for token, _ in row) for row in drawn], set(ends)
    silent = _silent(tokenizer, last)
    # Many answers are the same.
    different = list(dict.fromkeys(tokens))
    spoken = [[token for token in row if token not in silent] for row in different]
    texts = dict(zip(different, tokenizer.batch_decode(spoken), strict=True))
    return [
        Completion(ids, tuple(logprob for _, logprob in row), texts[ids], ids[-1] in last)
        for ids, row in zip(tokens, drawn, strict=True)
    ]


def _silent(tokenizer: Any, ends: Iterable[int]) -> set[int | None]:
    """Ids of tokens that mean nothing in an answer."""
    names = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
    return {*ends, *(getattr(tokenizer, name) for name in names)}


class Detokenizer:
    """Text of an answer, token by token: together what ``completions_of`` decodes, if a tokenizer appends only.

    Args:
        tokenizer: tokenizer of the policy.
        ends: ids that end an answer.
    """

    def __init__(self, tokenizer: Any, ends: Iterable[int]) -> None:
        self._tokenizer, self._skipped = tokenizer, _silent(tokenizer, ends)
        self._ids: list[int] = []
        self._before, self._read = 0, 0

    def add(self, token: int) -> str:
        """Text that a token adds; empty while a character is incomplete."""
        if token in self._skipped:
            return ""
        self._ids.append(token)
        window = self._ids[self._before :]
        known, text = (self._tokenizer.decode(ids) for ids in (window[: self._read - self._before], window))
        if text.endswith("\ufffd") or not text.startswith(known):
            return ""
        self._before, self._read = self._read, len(self._ids)
        return str(text[len(known) :])
