"""The transformers engine: batched generation in which what prompts share is computed once, or nearly so.

Prompts are paths of a prefix tree. Tokens that no prompt had before are computed in packs, and their keys and values
kept; an answer's row begins with those of its prompt. Rows keep their true positions and see nothing else, so a row's
numbers do not depend on its neighbours. Answers to one prompt are one row for as long as they have drawn the same
tokens.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from configs.engine import TransformersEngineConfig
from configs.rollout import RolloutConfig, SamplingConfig
from models.branches import Branches
from models.engines.base import Request, check_lengths, completions_of, ends_of, limit_of
from models.forward import Columns
from models.key_values import NodeStore
from models.lean_forward import forward_of
from models.memory_format import lay_out
from models.policy import Policy, load_weights
from models.prefill import Pack, packs
from models.prefix_tree import SPARE, Nodes, PrefixTree
from models.sampling import Sampler
from records.draws import uniforms
from records.episode import Completion


class TransformersEngine:
    """Generates with a Hugging Face causal LM, or with a leaner forward of its weights."""

    def __init__(self, policy: Policy, config: TransformersEngineConfig, sampling: SamplingConfig) -> None:
        torch.set_num_threads(config.threads)
        self.policy = policy
        self._rows = config.rows
        self._length = sampling.max_new_tokens
        self._sampler = Sampler(sampling)
        self._limit = limit_of(policy.model.config)
        self._ends = torch.tensor(ends_of(policy))
        lay_out(policy)
        self._forward = forward_of(policy)
        self.forget()

    def load(self, policy: Path) -> None:
        """Generate with the weights in this directory from now on."""
        load_weights(self.policy, policy)
        self.forget()

    def forget(self) -> None:
        """Compute every prompt anew from now on: in other packs it may differ in its last bits."""
        self._tree, self._store = PrefixTree(), NodeStore()

    def close(self) -> None:
        """Nothing outlives the process."""

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt and its answer would be longer than the policy can attend to.
        """
        check_lengths(requests, self._length, self._limit)
        starts = range(0, len(requests), self._rows)
        try:
            batches = [self._batch(requests[start : start + self._rows]) for start in starts]
        except BaseException:
            # The tree may have nodes that the store has not.
            self.forget()
            raise
        self._trim([path for _, paths in batches for path in paths])
        return [completion for completions, _ in batches for completion in completions]

    def _batch(self, requests: Sequence[Request]) -> tuple[list[Completion], list[Nodes]]:
        """A completion of each, and the paths of their prompts."""
        asked = [request.prompt_ids for request in requests]
        done = [(pack, self._prefill(pack)) for pack in packs(self._tree, list(dict.fromkeys(asked)))]
        paths, logits = [path for pack, _ in done for path in pack.paths], torch.cat([behind for _, behind in done])
        points = torch.from_numpy(uniforms([request.key for request in requests], self._length))
        drawn = self._decode(paths, logits, Branches.begin(asked), points)
        return completions_of(self.policy.tokenizer, self._ends.tolist(), drawn), paths

    def _prefill(self, pack: Pack) -> torch.Tensor:
        """Logits behind the prompts of a pack, whose keys and values are kept."""
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
        """A mask as it is added to attention scores; of booleans every layer would make this anew."""
        return torch.zeros(mask.shape, dtype=self.policy.model.dtype).masked_fill_(~mask, -torch.inf)

    def _trim(self, paths: Sequence[Nodes]) -> None:
        """Once more than ``SPARE`` times as much is held as these prompts go through, hold that alone."""
        used = np.unique(np.concatenate([path[:-1] for path in paths])) if paths else np.zeros(0, dtype=np.int64)
        if self._tree.size > SPARE * len(used):
            self._tree.keep(used)
            self._store.keep(torch.from_numpy(used))


def embedded_engine(policy: Policy, rollout: RolloutConfig) -> TransformersEngine:
    """An engine in this process, whatever the run's is."""
    engine = rollout.engine
    if not isinstance(engine, TransformersEngineConfig):
        engine = TransformersEngineConfig(threads=engine.threads)
    return TransformersEngine(policy, engine, rollout.sampling)
