"""The transformers engine: batched generation in which what prompts share is computed once.

Columns of a batch: [prefix, padded on its right | rest of the prompt, padded on its left | generated]. Rows keep
their true positions and see none of the padding, so a row's numbers do not depend on its neighbours. Prefixes live
on from turn to turn for as long as their group is asked for. Answers to one prompt are one row for as long as they
have drawn the same tokens.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from configs.engine import TransformersEngineConfig
from configs.rollout import RolloutConfig, SamplingConfig
from models.branches import Branches
from models.engines.base import Request, check_lengths, completions_of, ends_of, limit_of
from models.layout import lay_out
from models.policy import Policy, load_weights
from models.prefix import Prefix, SlotCache, heads
from models.sampling import Sampler, uniforms_of
from records.episode import Completion


class TransformersEngine:
    """Generates with a Hugging Face causal LM."""

    def __init__(self, policy: Policy, config: TransformersEngineConfig, sampling: SamplingConfig) -> None:
        torch.set_num_threads(config.threads)
        self.policy = policy
        self._rows = config.rows
        self._length = sampling.max_new_tokens
        self._sampler = Sampler(sampling)
        self._prefixes: dict[str, Prefix] = {}
        self._limit = limit_of(policy.model.config)
        self._ends = torch.tensor(ends_of(policy))

    def load(self, policy: Path) -> None:
        """Generate with the weights in this directory from now on."""
        load_weights(self.policy, policy)
        self.forget()

    def forget(self) -> None:
        """Compute every head anew from now on: in other batches it may differ in its last bits."""
        self._prefixes.clear()

    def close(self) -> None:
        """Nothing outlives the process."""

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt and its answer would be longer than the policy can attend to.
        """
        check_lengths(requests, self._length, self._limit)
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
        asked = [(request.group, request.prompt_ids) for request in requests]
        prompts, branches = dict.fromkeys(asked), Branches.begin(asked)
        layout = lay_out([self._prefixes[group] for group, _ in prompts], [prompt_ids for _, prompt_ids in prompts])
        uniforms = uniforms_of([request.key for request in requests], self._length)
        drawn: list[list[tuple[int, float]]] = [[] for _ in requests]
        cache = layout.cache(self._length)
        logits = self._forward(layout.tokens, layout.positions(), layout.mask(), cache)
        for step in range(self._length):
            tokens, logprobs = self._sampler.draw(logits[branches.rows], uniforms[branches.answers, step])
            made = zip(branches.answers.tolist(), tokens.tolist(), logprobs.tolist(), strict=True)
            for answer, token, logprob in made:
                drawn[answer].append((token, logprob))
            left = ~torch.isin(tokens, self._ends)
            if step + 1 == self._length or not left.any():
                break
            branches, parents, tokens = branches.grow(tokens, left)
            cache.keep(parents)
            positions, mask = layout.next(branches.prompts, step)
            logits = self._forward(tokens.unsqueeze(-1), positions, mask, cache)
        return completions_of(self.policy.tokenizer, self._ends.tolist(), drawn)

    def _forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: SlotCache
    ) -> torch.Tensor:
        output = self.policy.model(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def embedded_engine(policy: Policy, rollout: RolloutConfig) -> TransformersEngine:
    """An engine in this process, whatever the run's is."""
    engine = rollout.engine
    if not isinstance(engine, TransformersEngineConfig):
        engine = TransformersEngineConfig(threads=engine.threads)
    return TransformersEngine(policy, engine, rollout.sampling)
