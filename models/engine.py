"""The transformers engine: batched generation in which a group's shared prompt head is computed once.

Columns of a batch: [prefix, padded on its right | rest of the prompt, padded on its left | generated]. Rows keep
their true positions and see none of the padding, so a row's numbers do not depend on its neighbours. Prefixes live
on from turn to turn for as long as their group is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from configs.engine import EngineConfig
from configs.errors import CoevoError
from configs.rollout import SamplingConfig
from models.layout import lay_out
from models.policy import Policy, load_weights
from models.prefix import Prefix, SlotCache, heads
from models.sampling import Sampler, uniforms_of
from records.draws import Key
from records.episode import Completion


@dataclass(frozen=True, slots=True)
class Request:
    """One completion to be generated.

    Attributes:
        prompt_ids: token ids of the prompt, at least one.
        key: root of the row's draws.
        group: requests of one group share the head of their prompts.
    """

    prompt_ids: tuple[int, ...]
    key: Key
    group: str


class TransformersEngine:
    """Generates with a Hugging Face causal LM."""

    def __init__(self, policy: Policy, config: EngineConfig, sampling: SamplingConfig) -> None:
        torch.set_num_threads(config.threads)
        self._policy = policy
        self._rows = config.rows
        self._length = sampling.max_new_tokens
        self._sampler = Sampler(sampling)
        self._prefixes: dict[str, Prefix] = {}
        self._limit = _limit(policy.model.config)
        self._ends = torch.tensor(_ends(policy))

    def load(self, policy: Path) -> None:
        """Generate with the weights in this directory from now on."""
        load_weights(self._policy, policy)
        self.forget()

    def forget(self) -> None:
        """Compute every head anew from now on: in other batches it may differ in its last bits."""
        self._prefixes.clear()

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt and its answer would be longer than the policy can attend to.
        """
        longest = max((len(request.prompt_ids) for request in requests), default=0) + self._length
        if longest > self._limit:
            raise CoevoError(
                f"prompt and answer come to {longest} tokens, the policy attends to {self._limit}: "
                "lower context.experience_tokens or context.memory_length, or choose a longer policy"
            )
        self._share(requests)
        batches = [requests[start : start + self._rows] for start in range(0, len(requests), self._rows)]
        return [completion for batch in batches for completion in self._batch(batch)]

    def _share(self, requests: Sequence[Request]) -> None:
        """Have the prefix of every group that is asked for, and of no other."""
        prompts: dict[str, list[tuple[int, ...]]] = {}
        for request in requests:
            prompts.setdefault(request.group, []).append(request.prompt_ids)
        self._prefixes = {group: prefix for group, prefix in self._prefixes.items() if group in prompts}
        missing = heads({group: prompts[group] for group in prompts if group not in self._prefixes})
        groups = list(missing)
        for start in range(0, len(groups), self._rows):
            some = groups[start : start + self._rows]
            self._prefixes |= zip(some, self._compute([missing[group] for group in some]), strict=True)

    def _compute(self, ids: Sequence[tuple[int, ...]]) -> list[Prefix]:
        width = max(1, *map(len, ids))
        tokens = torch.tensor([[*row, *[0] * (width - len(row))] for row in ids])
        causal = torch.ones(width, width, dtype=torch.bool).tril().expand(len(ids), 1, width, width)
        cache = SlotCache(width)
        self._forward(tokens, torch.arange(width).expand(len(ids), -1), causal, cache)
        return list(cache.prefixes(ids))

    def _batch(self, requests: Sequence[Request]) -> list[Completion]:
        layout = lay_out([self._prefixes[request.group] for request in requests], [r.prompt_ids for r in requests])
        uniforms = uniforms_of([request.key for request in requests], self._length)
        drawn: list[list[tuple[int, float]]] = [[] for _ in requests]
        cache, running = layout.cache(self._length), torch.arange(len(requests))
        logits = self._forward(layout.tokens, layout.positions(), layout.mask(), cache)
        for step in range(self._length):
            tokens, logprobs = self._sampler.draw(logits, uniforms[running, step])
            for row, token, logprob in zip(running.tolist(), tokens.tolist(), logprobs.tolist(), strict=True):
                drawn[row].append((token, logprob))
            left = ~torch.isin(tokens, self._ends)
            if step + 1 == self._length or not left.any():
                break
            running, tokens = running[left], tokens[left]
            if not left.all():
                cache.keep(left)
            positions, mask = layout.next(running, step)
            logits = self._forward(tokens.unsqueeze(-1), positions, mask, cache)
        return self._completions(drawn)

    def _completions(self, drawn: Sequence[Sequence[tuple[int, float]]]) -> list[Completion]:
        tokens = [tuple(token for token, _ in row) for row in drawn]
        texts = self._policy.tokenizer.batch_decode(tokens, skip_special_tokens=True)
        ends = set(self._ends.tolist())
        return [
            Completion(ids, tuple(logprob for _, logprob in row), text, ids[-1] in ends)
            for ids, row, text in zip(tokens, drawn, texts, strict=True)
        ]

    def _forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: SlotCache
    ) -> torch.Tensor:
        output = self._policy.model(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def _ends(policy: Policy) -> list[int]:
    """Token ids that end an answer: the tokenizer's and the model's own."""
    own = policy.model.generation_config.eos_token_id
    return sorted({policy.tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])} - {None})


def _limit(config: Any) -> int:
    """Longest sequence in tokens; a batch's mask spans all columns, so a sliding window must never close."""
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}
    if kinds:
        raise CoevoError(f"the policy has {', '.join(sorted(kinds))} layers: choose one with attention in every layer")
    positions = int(config.max_position_embeddings)
    return min(positions, getattr(config, "sliding_window", None) or positions)
