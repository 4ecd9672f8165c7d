"""The shared-prefix forward: log-probs of completions from a packed tree, with gradients into what is shared."""

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from models.trainer.packing import Packed


class SharedPrefix(nn.Module):
    """A causal LM that forwards each level of a tree once, on the keys and values of the levels above.

    Any transformers causal LM with full attention and a ``DynamicCache`` will do, with or without adapters.
    """

    def __init__(self, model: nn.Module, temperature: float) -> None:
        super().__init__()
        self.model = model.eval()  # dropout would make every importance ratio noise
        self.temperature = temperature

    def forward(self, packed: Packed) -> tuple[Tensor, Tensor]:
        """Log-probs of ``packed.targets`` at the temperature and entropies in nats, both [rows, longest completion].

        Columns past the end of a row's completion hold numbers without meaning.
        """
        logprobs = torch.log_softmax(self._logits(packed).float() / self.temperature, dim=-1)
        detached = logprobs.detach()
        entropy = -(detached.exp() * detached).sum(-1)
        columns = torch.arange(packed.targets.shape[1])
        return logprobs[packed.leaves[:, None], columns, packed.targets], entropy[packed.leaves]

    def _logits(self, packed: Packed) -> Tensor:
        """Logits of the last level, [nodes, width, vocabulary]."""
        cache, mask = DynamicCache(), torch.zeros(1, 0, dtype=torch.int64)
        for depth, level in enumerate(packed.levels, start=1):
            mask = torch.cat([mask[level.parents], level.mask], dim=1)
            cache.batch_select_indices(level.parents)
            logits: Tensor = self.model(
                input_ids=level.ids,
                attention_mask=mask,
                position_ids=level.positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=0 if depth == len(packed.levels) else 1,
            ).logits
        return logits
