"""The transformers engine: batched generation that computes shared parts of prompts once, or nearly so.

Prompts are paths of a prefix tree. New tokens are computed in packs, and their keys and values are kept; an answer's
row begins with those of its prompt. Rows keep their true positions and see nothing else, so a row's numbers do not
depend on its neighbours. Answers to one prompt share one row as long as they have drawn the same tokens.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from coevo.configs.rollout.rollout_config import RolloutConfig, SamplingConfig, TransformersEngineConfig
from coevo.models.engines.requests import Request, TokenListener, check_lengths, completions_of
from coevo.models.engines.transformers.decoding import Columns, NodeStore, Sampler, forward_of
from coevo.models.engines.transformers.prefill_rows import MAX_TREE_RATIO, Nodes, PrefixTree, PromptRow, forwards
from coevo.models.policy.language_model import Policy, ends_of, limit_of
from coevo.models.policy.policy import load_weights
from coevo.records.draws import uniforms
from coevo.records.episode import Completion

NodeParts = tuple[Nodes, Nodes, Nodes]


@dataclass(frozen=True)
class Pack:
    """Prompts that one forward computes.

    Attributes:
        tokens: (rows, new) token ids, 0 in padding columns.
        positions: (rows, new) of each in its prompt.
        held: (rows, columns) nodes computed before that some of them attend to.
        mask: (rows, 1, new, columns + new) attention of each: everything before it in its prompt, and itself.
        added: (nodes,) row and column of each added node, in the order of their numbers.
        paths: the nodes of each prompt.
        last: (prompts,) place of each prompt's last token in the last ``ends`` columns, row after row.
        ends: maximum number of prompts per row.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    held: torch.Tensor
    mask: torch.Tensor
    added: tuple[torch.Tensor, torch.Tensor]
    paths: Sequence[Nodes]
    last: torch.Tensor
    ends: int


class _Page:
    """Empty arrays of a pack; ``widths`` are the widths of the parts of its columns."""

    def __init__(self, rows: int, widths: Sequence[int]) -> None:
        width, new = widths[0], sum(widths[1:])
        self._starts = np.cumsum([0, *widths[:-1]])
        self.tokens, self.positions = np.zeros((2, rows, new), dtype=np.int64)
        self.held = np.zeros((rows, width), dtype=np.int64)
        self.mask = np.zeros((rows, 1, new, width + new), dtype=bool)
        # Padding attends to itself: attention to nothing is NaN, which spreads.
        self.mask[:, 0, range(new), range(width, width + new)] = True

    def write(self, number: int, row: PromptRow, parts: NodeParts) -> Nodes:
        """Write a row; return row number and column, (2, nodes), of the nodes that it adds."""
        self.held[number, : len(parts[0])] = parts[0]
        columns = np.concatenate(
            [start + np.arange(len(part)) for start, part in zip(self._starts, parts, strict=True)]
        )
        columns = columns[np.argsort(np.concatenate(parts))]
        before = np.tri(max(map(len, row.paths)), dtype=bool)
        for prompt, path in zip(row.prompts, row.paths, strict=True):
            self._prompt(number, prompt, columns[np.searchsorted(row.nodes, path)], before)
        own = columns[row.nodes >= row.begin]
        return np.stack([np.full_like(own, number), own])

    def _prompt(self, number: int, prompt: Sequence[int], columns: Nodes, before: npt.NDArray[np.bool_]) -> None:
        """Write a prompt whose tokens have these columns."""
        length, width = len(prompt), self.held.shape[1]
        known = int(np.count_nonzero(columns < width))
        new = columns[known:] - width
        self.tokens[number, new], self.positions[number, new] = prompt[known:], range(known, length)
        self.mask[number, 0, new[:, None], columns] = before[known:length, :length]


@dataclass(frozen=True)
class Branches:
    """Rows of the running answers.

    Attributes:
        answers: (running,) indices of the answers that have not ended.
        rows: (running,) row of each.
        prompts: (rows,) index of the prompt that each row continues.
    """

    answers: torch.Tensor
    rows: torch.Tensor
    prompts: torch.Tensor

    @classmethod
    def begin(cls, asked: Sequence[Hashable]) -> "Branches":
        """Start with one row for all answers to one prompt, in the order in which prompts first appear."""
        row_of = {prompt: row for row, prompt in enumerate(dict.fromkeys(asked))}
        rows = torch.tensor([row_of[prompt] for prompt in asked])
        return cls(torch.arange(len(asked)), rows, torch.arange(len(row_of)))

    def grow(self, tokens: torch.Tensor, goes_on: torch.Tensor) -> tuple["Branches", torch.Tensor, torch.Tensor]:
        """Split the rows by the tokens that the running answers have drawn.

        Args:
            tokens: (running,) one token of each answer.
            goes_on: (running,) mask of answers that continue, at least one.

        Returns:
            The next rows; the parent row of each, in order, and its token, both (rows,).
        """
        tokens = tokens[goes_on]
        count = int(tokens.max()) + 1
        pairs, rows = torch.unique(self.rows[goes_on] * count + tokens, return_inverse=True)
        parents = pairs // count
        return Branches(self.answers[goes_on], rows, self.prompts[parents]), parents, pairs % count


class TransformersEngine:
    """Generates with a Hugging Face causal LM, or with a leaner forward of its weights."""

    def __init__(self, policy: Policy, config: TransformersEngineConfig, sampling: SamplingConfig) -> None:
        torch.set_num_threads(config.threads)
        self.policy = policy
        self._rows = config.rows
        self._settles = False
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

    def settled(self) -> "TransformersEngine":
        """View of this engine, with prompts of its own, whose answers do not depend on the batch that they are in.

        A batch changes the last bits of a logit. Where that could change a draw, the answer's logits are computed once
        more, for its sequence alone; below float32 those of each draw are.
        """
        view = copy(self)
        view._settles = True
        view.forget()
        return view

    def forget(self) -> None:
        """Compute every prompt again from now on: in other packs it may differ in its last bits."""
        self._tree, self._store = PrefixTree(), NodeStore()

    def close(self) -> None:
        """Do nothing: nothing outlives the process."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt and its answer would exceed the policy's limit.
        """
        return self.generate_to(requests, [None] * len(requests))

    @torch.inference_mode()
    def generate_to(self, requests: Sequence[Request], listeners: Sequence[TokenListener | None]) -> list[Completion]:
        """Complete every prompt, in order, and tell listeners each token once it is drawn."""
        check_lengths(requests, self._length, self._limit)
        starts = range(0, len(requests), self._rows)
        try:
            parts = (slice(start, start + self._rows) for start in starts)
            batches = [self._batch(requests[part], listeners[part]) for part in parts]
        except BaseException:
            # The tree may have nodes that the store lacks.
            self.forget()
            raise
        self._trim([path for _, paths in batches for path in paths])
        return [completion for completions, _ in batches for completion in completions]

    def _sample_by(self, sampling: SamplingConfig) -> None:
        self._length = sampling.max_new_tokens
        self._sampler = Sampler(sampling)

    def _batch(
        self, requests: Sequence[Request], listeners: Sequence[TokenListener | None]
    ) -> tuple[list[Completion], list[Nodes]]:
        """Completion of each request, and the paths of their prompts."""
        asked = [request.prompt_ids for request in requests]
        done = [(pack, self._prefill(pack)) for pack in packs(self._tree, list(dict.fromkeys(asked)))]
        paths, logits = [path for pack, _ in done for path in pack.paths], torch.cat([behind for _, behind in done])
        points = torch.from_numpy(uniforms([request.key for request in requests], self._length))
        drawn = self._decode(asked, paths, logits, points, listeners)
        return completions_of(self.policy.tokenizer, self._ends.tolist(), drawn), paths

    def _prefill(self, pack: Pack) -> torch.Tensor:
        """Logits after the prompts of a pack, whose keys and values are kept."""
        cache = self._store.cache(pack.held, pack.tokens.shape[1])
        logits = self._forward(Columns(pack.tokens, pack.positions, self._bias(pack.mask), pack.ends), cache)
        self._store.append(cache, *pack.added)
        return logits[pack.last]

    def _decode(
        self,
        asked: Sequence[tuple[int, ...]],
        paths: Sequence[Nodes],
        logits: torch.Tensor,
        points: torch.Tensor,
        listeners: Sequence[TokenListener | None],
    ) -> list[list[tuple[int, float]]]:
        """Tokens of each answer with their log-probs. Columns: [prompt, padded on its right | generated]."""
        branches = Branches.begin(asked)
        lengths, nodes = torch.tensor([[len(path)] for path in paths]), [torch.from_numpy(path) for path in paths]
        cache = self._store.cache(pad_sequence(nodes, batch_first=True), self._length)
        width, drawn = cache.get_seq_length(), [list[tuple[int, float]]() for _ in points]
        columns = torch.arange(width + self._length)
        mask = self._bias((columns < lengths) | (columns >= width))[:, None, None]
        for step in range(self._length):
            at = points[branches.answers, step]
            tokens, logprobs = self._sampler.draw(logits, branches.rows, at)
            if self._settles:
                self._settle(logits, branches, at, (tokens, logprobs), lambda answer: (
                    *asked[answer], *(token for token, _ in drawn[answer])
                ))  # fmt: skip
            left = ~torch.isin(tokens, self._ends)
            made = zip(branches.answers.tolist(), tokens.tolist(), logprobs.tolist(), strict=True)
            for row, (answer, token, logprob) in enumerate(made):
                drawn[answer].append((token, logprob))
                listener = listeners[answer]
                if listener is not None and not listener(step, token):
                    left[row] = False
            if step + 1 == self._length or not left.any():
                break
            branches, parents, tokens = branches.grow(tokens, left)
            cache.keep(parents)
            positions, seen = lengths[branches.prompts] + step, mask[branches.prompts, ..., : width + step + 1]
            logits = self._forward(Columns(tokens.unsqueeze(-1), positions, seen, 1), cache)
        return drawn

    def _settle(
        self,
        logits: torch.Tensor,
        branches: Branches,
        points: torch.Tensor,
        drawn: tuple[torch.Tensor, torch.Tensor],
        sequence: Callable[[int], tuple[int, ...]],
    ) -> None:
        """Draw again, from the logits of each ``sequence`` alone, what rounding could decide."""
        tokens, logprobs = drawn
        exact = self.policy.model.dtype == torch.float32
        doubt = self._sampler.unsettled(logits, branches.rows, points, tokens) if exact else torch.ones_like(tokens)
        for number in doubt.nonzero().flatten().tolist():
            alone, at = self._alone(sequence(int(branches.answers[number]))), slice(number, number + 1)
            tokens[at], logprobs[at] = self._sampler.draw(alone, torch.tensor([0]), points[at])

    def _alone(self, sequence: tuple[int, ...]) -> torch.Tensor:
        """Logits, (1, vocabulary), behind one sequence that shares nothing with a batch."""
        shared = self._tree, self._store
        try:
            self.forget()
            return torch.cat([self._prefill(pack) for pack in packs(self._tree, [sequence])])
        finally:
            self._tree, self._store = shared

    def _bias(self, mask: torch.Tensor) -> torch.Tensor:
        """Additive form of a mask for attention scores; of booleans every layer would compute it again."""
        return torch.zeros(mask.shape, dtype=self.policy.model.dtype).masked_fill_(~mask, -torch.inf)

    def _trim(self, paths: Sequence[Nodes]) -> None:
        """Keep only the nodes of these prompts if the tree has more than ``SPARE`` times as many."""
        used = np.unique(np.concatenate([path[:-1] for path in paths])) if paths else np.zeros(0, dtype=np.int64)
        if self._tree.size > MAX_TREE_RATIO * len(used):
            self._tree.keep(used)
            self._store.keep(torch.from_numpy(used))


def embedded_engine(policy: Policy, rollout: RolloutConfig) -> TransformersEngine:
    """Create an engine in this process, whichever the run uses."""
    engine = rollout.engine
    if not isinstance(engine, TransformersEngineConfig):
        engine = TransformersEngineConfig(threads=engine.threads)
    return TransformersEngine(policy, engine, rollout.sampling)


def packs(tree: PrefixTree, prompts: Sequence[tuple[int, ...]]) -> Iterator[Pack]:
    """Packs for all prompts, in their order; each must be computed before the next is requested."""
    for rows in forwards(tree, prompts):
        yield _pack(rows)


def _pack(rows: Sequence[PromptRow]) -> Pack:
    parts = [_parts(row, rows[0].begin) for row in rows]
    widths = [max(map(len, part)) for part in zip(*parts, strict=True)]
    page, ends = _Page(len(rows), widths), widths[-1]
    added = [page.write(number, row, part) for number, (row, part) in enumerate(zip(rows, parts, strict=True))]
    last = [number * ends + index for number, row in enumerate(rows) for index in range(len(row.paths))]
    row_of, column_of = torch.from_numpy(np.concatenate(added, axis=1))
    return Pack(
        tokens=torch.from_numpy(page.tokens),
        positions=torch.from_numpy(page.positions),
        held=torch.from_numpy(page.held),
        mask=torch.from_numpy(page.mask),
        added=(row_of, column_of),
        paths=[path for row in rows for path in row.paths],
        last=torch.tensor(last),
        ends=ends,
    )


def _parts(row: PromptRow, first: int) -> NodeParts:
    """Nodes of a row by the parts of its columns; those from ``first`` on are new."""
    nodes, ends = row.nodes, np.array([path[-1] for path in row.paths])
    inner = nodes >= first
    inner[np.searchsorted(nodes, ends)] = False
    return nodes[nodes < first], nodes[inner], ends


def lay_out(policy: Policy) -> None:
    """Change the float32 matrices of a policy to the layout that is fast for decoding on a CPU; values stay.

    Embeddings are read by row and stay unchanged, also if they are the output layer as well.
    """
    shared = policy.model.get_input_embeddings().weight
    for part in policy.model.modules():
        if isinstance(part, nn.Linear) and part.weight is not shared and part.weight.dtype == torch.float32:
            part.weight.data = part.weight.data.t().contiguous().t()
