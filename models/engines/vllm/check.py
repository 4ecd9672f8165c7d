"""Whether a server has the weights that it should: log-probs of a fixed prompt, its and ours."""

from collections.abc import Sequence

import torch

from configs.engine import VllmEngineConfig
from configs.errors import CoevoError
from models.policy import Policy

LENGTH = 48
"""Most tokens of the prompt; they are spread over the vocabulary."""
TOLERANCES = {"float32": 1e-5, "bfloat16": 0.1, "float16": 0.1}


class WeightsError(CoevoError):
    """A server's log-probs are not those of the policy that it was given."""


def prompt_of(policy: Policy) -> list[int]:
    """Token ids to compare on: nothing that means anything, and the same at each load."""
    size = len(policy.tokenizer)
    length = min(LENGTH, policy.model.config.max_position_embeddings - 1)
    return [(3 + 7919 * place) % size for place in range(length)]


@torch.inference_mode()
def logprobs_of(policy: Policy, prompt: Sequence[int]) -> list[float]:
    """Log-probs of a prompt's tokens but the first, each given those before it, at temperature 1."""
    ids = torch.tensor([prompt])
    logits = policy.model(input_ids=ids).logits[0, :-1].double()
    found: list[float] = logits.log_softmax(-1).gather(-1, ids[0, 1:, None]).squeeze(-1).tolist()
    return found


def compare(theirs: Sequence[float], ours: Sequence[float], config: VllmEngineConfig, url: str) -> float:
    """Largest distance between both, relative where a log-prob is beyond -1: rounding grows with the logits.

    Raises:
        WeightsError: it is more than the configuration tolerates.
    """
    tolerance = TOLERANCES[config.dtype] if config.tolerance is None else config.tolerance
    gap = max(abs(their - our) / max(1.0, abs(our)) for their, our in zip(theirs, ours, strict=True))
    if not gap <= tolerance:
        raise WeightsError(
            f"the vLLM server at {url} does not have the policy's weights: its log-probs are off by {gap:.1e}, more "
            f"than {tolerance:g}; see its log, or raise rollout.engine.tolerance if {config.dtype} explains it"
        )
    return gap
