"""Check of a server's weights: its log-probs of a fixed prompt and after it, compared with the policy's own.

Distances are means over the prompt, in nats. A server has the new weights if it is near the policy and, where old and
new weights can be told apart, nearer to the new ones: below float32 rounding alone allows more than one small update.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.utilities.errors import CoevoError

TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.1}
"""Largest mean distance from the policy, in nats, by the server's precision."""


class WeightsError(CoevoError):
    """A server's log-probs differ from those of the policy that it was given."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """Distances of log-probs around an update, in nats.

    Attributes:
        change: between the weights before and the new ones.
        noise: of the server from the nearer of the two.
    """

    change: float
    noise: float

    @property
    def distinguishable(self) -> bool:
        """True if log-probs can tell the weights before from the new ones; otherwise only a digest can."""
        return self.change > 2 * self.noise


@dataclass(frozen=True)
class ServerProbe:
    """Expected answer of a server with the right weights.

    Attributes:
        prompt: token ids.
        logprobs: of the prompt's tokens except the first, at temperature 1.
        temperature: of the rollouts.
        following: log-prob of each token of the vocabulary after the prompt, at that temperature.
        former: ``logprobs`` under the weights before; empty for the first weights.
    """

    prompt: Sequence[int]
    logprobs: Sequence[float]
    temperature: float
    following: Sequence[float]
    former: Sequence[float] = ()

    @property
    def change(self) -> float:
        """Distance between the weights before and these, in nats; 0 for the first weights."""
        return _distance(self.logprobs, self.former) if self.former else 0.0

    def body(self) -> dict[str, Any]:
        """Body of the request."""
        asked = {"prompt": [list(self.prompt)], "max_tokens": 1, "temperature": self.temperature}
        return asked | {
            "logprobs": 0,
            "prompt_logprobs": 0,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }

    def check(self, choice: Mapping[str, Any], config: VllmEngineConfig, url: str) -> "Closeness | None":
        """Compare an answer; return how near old and new weights are, None for the first weights.

        Raises:
            WeightsError: its distance exceeds the configured tolerance, or it is that of the weights before.
        """
        tolerance = TOLERANCES[config.dtype] if config.tolerance is None else config.tolerance
        before = zip(choice["prompt_logprobs"][1:], self.prompt[1:], strict=True)
        theirs = [float(at[str(token)]["logprob"]) for at, token in before]
        after = choice["logprobs"]["token_logprobs"]
        off = _distance([*theirs, *after], [*self.logprobs, self.following[choice["token_ids"][0]]])
        if not off <= tolerance:  # NaN is no distance
            raise WeightsError(
                f"the vLLM server at {url} does not have the policy's weights: its log-probs are off by "
                f"{off:.1e} nats, more than {tolerance:g}; see its log; it must compute in "
                f"{config.dtype} (--dtype) as rollout.engine.dtype says, or raise rollout.engine.tolerance"
            )
        if not self.former:
            return None
        stale, fresh = (_distance(theirs, known) for known in (self.former, self.logprobs))
        if _is_stale(stale, fresh, self.change):
            raise WeightsError(
                f"the vLLM server at {url} still has the weights before the update: its log-probs are nearer to those "
                f"than to the new ones, {self.change:.1e} nats apart; see its log"
            )
        return Closeness(self.change, min(stale, fresh))


def _is_stale(stale: float, off: float, change: float) -> bool:
    """True if the weights before explain an answer better, and lie far enough from the new ones to say so."""
    return stale < off and 2 * stale < change


def _distance(ones: Sequence[float], others: Sequence[float]) -> float:
    """Mean absolute difference of log-probs, in nats."""
    return fmean(abs(one - other) for one, other in zip(ones, others, strict=True))
