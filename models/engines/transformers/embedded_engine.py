"""The transformers engine: batched generation that computes shared parts of prompts once, or nearly so.

Prompts are paths of a prefix tree. New tokens are computed in packs, and their keys and values are kept; an answer's
row begins with those of its prompt. Rows keep their true positions and see nothing else, so a row's numbers do not
depend on its neighbours. Answers to one prompt share one row as long as they have drawn the same tokens.
"""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from coevo.configs.rollout.engine_config import TransformersEngineConfig
from coevo.configs.rollout.rollout_config import RolloutConfig, SamplingConfig
from coevo.models.engines.requests import Request, check_lengths, completions_of, ends_of, limit_of
from coevo.models.engines.transformers.branches import Branches
from coevo.models.engines.transformers.key_values import NodeStore
from coevo.models.engines.transformers.lean_forward import forward_of
from coevo.models.engines.transformers.model_forward import Columns
from coevo.models.engines.transformers.prefill import Pack, packs
from coevo.models.engines.transformers.prefix_tree import SPARE, Nodes, PrefixTree
from coevo.models.engines.transformers.sampling import Sampler
from coevo.models.policy.memory_format import lay_out
from coevo.models.policy.policy import Policy, load_weights
from coevo.records.draws import uniforms
from coevo.records.episode import Completion


class TransformersEngine:
    """Generates with a Hugging Face causal LM, or with a leaner forward of its weights."""

    def __init__(self, policy: Policy, config: TransformersEngineConfig, sampling: SamplingConfig) -> None:
        torch.set_num_threads(config.threads)
        self.policy = policy
        self._rows = config.rows
        self._sample_by(sampling)
        self._limit = limit_of(policy.model.config)
        self._ends = torch.tensor(ends_of(policy))
        lay_out(policy)
        self._forward = forward_of(policy)
        self.forget()

    @property
    def longest_prompt(self) -> int:
        """Most tokens of a prompt that leave room for the longest answer."""
        return self._limit - self._length

    def load(self, policy: Path) -> dict[str, float]:
        """Generate with the weights in this directory from now on."""
        load_weights(self.policy, policy)
        self.forget()
        return {}

    def with_sampling(self, sampling: SamplingConfig) -> "TransformersEngine":
        """View of this engine with another sampling and with prompts of its own, on the same weights."""
        view = copy(self)
        view._sample_by(sampling)
        view.forget()
        return view

    def forget(self) -> None:
        """Compute every prompt again from now on: in other packs it may differ in its last bits."""
        self._tree, self._store = PrefixTree(), NodeStore()

    def close(self) -> None:
        """Do nothing: nothing outlives the process."""

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt and its answer would exceed the policy's limit.
        """
        check_lengths(requests, self._length, self._limit)
        starts = range(0, len(requests), self._rows)
        try:
            batches = [self._batch(requests[start : start + self._rows]) for start in starts]
        except BaseException:
            # The tree may have nodes that the store lacks.
            self.forget()
            raise
        self._trim([path for _, paths in batches for path in paths])
        return [completion for completions, _ in batches for completion in completions]

    def _sample_by(self, sampling: SamplingConfig) -> None:
        self._length = sampling.max_new_tokens
        self._sampler = Sampler(sampling)

    def _batch(self, requests: Sequence[Request]) -> tuple[list[Completion], list[Nodes]]:
        """Completion of each request, and the paths of their prompts."""
        asked = [request.prompt_ids for request in requests]
        done = [(pack, self._prefill(pack)) for pack in packs(self._tree, list(dict.fromkeys(asked)))]
        paths, logits = [path for pack, _ in done for path in pack.paths], torch.cat([behind for _, behind in done])
        points = torch.from_numpy(uniforms([request.key for request in requests], self._length))
        drawn = self._decode(paths, logits, Branches.begin(asked), points)
        return completions_of(self.policy.tokenizer, self._ends.tolist(), drawn), paths

    def _prefill(self, pack: Pack) -> torch.Tensor:
        """Logits after the prompts of a pack, whose keys and values are kept."""
        cache = self._store.cache(pack.held, pack.tokens.shape[1])
        logits = self._forward(Columns(pack.tokens, pack.positions, self._bias(pack.mask), pack.ends), cache)
        self._store.append(cache, *pack.added)
        return logits[pack.last]

    def _decode(
        self, paths: Sequence[Nodes], logits: torch.Tensor, branches: Branches, points: torch.Tensor
    ) -> list[list[tuple[int, float]]]:
        """Tokens of each answer with their log-probs. Columns: [prompt, padded on its right | generated]."""
        lengths, nodes = torch.tensor([[len(path)] for path in paths]), [torch.from_numpy(path) for path in paths]
        cache = self._store.cache(pad_sequence(nodes, batch_first=True), self._length)
        width, drawn = cache.get_seq_length(), [list[tuple[int, float]]() for _ in points]
        columns = torch.arange(width + self._length)
        mask = self._bias((columns < lengths) | (columns >= width))[:, None, None]
        for step in range(self._length):
            tokens, logprobs = self._sampler.draw(logits, branches.rows, points[branches.answers, step])
            made = zip(branches.answers.tolist(), tokens.tolist(), logprobs.tolist(), strict=True)
            for answer, token, logprob in made:
                drawn[answer].append((token, logprob))
            left = ~torch.isin(tokens, self._ends)
            if step + 1 == self._length or not left.any():
                break
            branches, parents, tokens = branches.grow(tokens, left)
            cache.keep(parents)
            positions, seen = lengths[branches.prompts] + step, mask[branches.prompts, ..., : width + step + 1]
            logits = self._forward(Columns(tokens.unsqueeze(-1), positions, seen, 1), cache)
        return drawn

    def _bias(self, mask: torch.Tensor) -> torch.Tensor:
        """Additive form of a mask for attention scores; of booleans every layer would compute it again."""
        return torch.zeros(mask.shape, dtype=self.policy.model.dtype).masked_fill_(~mask, -torch.inf)

    def _trim(self, paths: Sequence[Nodes]) -> None:
        """Keep only the nodes of these prompts if the tree has more than ``SPARE`` times as many."""
        used = np.unique(np.concatenate([path[:-1] for path in paths])) if paths else np.zeros(0, dtype=np.int64)
        if self._tree.size > SPARE * len(used):
            self._tree.keep(used)
            self._store.keep(torch.from_numpy(used))


def embedded_engine(policy: Policy, rollout: RolloutConfig) -> TransformersEngine:
    """Create an engine in this process, whichever the run uses."""
    engine = rollout.engine
    if not isinstance(engine, TransformersEngineConfig):
        engine = TransformersEngineConfig(threads=engine.threads)
    return TransformersEngine(policy, engine, rollout.sampling)
