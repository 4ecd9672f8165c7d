"""The probe of a policy: its log-probs of a fixed prompt, computed in a process of its own.

The process that generates with vLLM never holds a policy: ``python -m coevo.models.engines.vllm.probe`` loads it,
prints the probe as JSON and ends.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from coevo.models.engines.vllm.server_check import ServerProbe
from coevo.models.policy.apart import run_apart
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import load

LENGTH = 48
"""Maximum number of tokens of the prompt; they are spread over the vocabulary."""


@torch.inference_mode()
def probe_of(policy: Policy, temperature: float, former: Sequence[float] = ()) -> ServerProbe:
    """Create a fixed prompt without meaning, and the policy's log-probs of it in a forward of our own.

    Args:
        policy: the expected policy.
        temperature: of the rollouts.
        former: log-probs of the same prompt under the weights before.
    """
    size, longest = len(policy.tokenizer), policy.model.config.max_position_embeddings - 1
    prompt = [(3 + 7919 * index) % size for index in range(min(LENGTH, longest))]
    ids = torch.tensor([prompt])
    logits = policy.model(input_ids=ids).logits[0].double()
    said = logits[:-1].log_softmax(-1).gather(-1, ids[0, 1:, None]).squeeze(-1)
    following = (logits[-1] / temperature).log_softmax(-1)
    return ServerProbe(prompt, said.tolist(), temperature, following.tolist(), former)


def probe_apart(directory: Path, temperature: float, threads: int, former: Sequence[float] = ()) -> ServerProbe:
    """Compute the probe of the policy in a directory in another process.

    Args:
        directory: the policy.
        temperature: of the rollouts.
        threads: CPU threads per tensor operation there.
        former: log-probs of the same prompt under the weights before.

    Raises:
        CoevoError: the process failed; its last line says why.
    """
    said = run_apart(__name__, str(directory), repr(temperature), str(threads))
    return replace(ServerProbe(**json.loads(said)), former=former)


def main(directory: str, temperature: str, threads: str) -> None:
    """Print the probe of the policy in a directory."""
    torch.set_num_threads(int(threads))
    print(json.dumps(asdict(probe_of(load(Path(directory)), float(temperature)))))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
