"""Check of the packing: a trie gives the log-probs that the model gives for single rows."""

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from coevo.configs.errors import CoevoError
from coevo.models.trainer.batch import Batch
from coevo.models.trainer.forward import bare
from coevo.models.trainer.microbatches import tries
from coevo.models.trainer.packing import pack_rows, pack_trie

ROWS: Final = 8
"""Maximum number of rows that are compared."""
MOST: Final = 1e-4
"""Maximum difference of a log-prob in float32, in nats."""
MEAN: Final = 0.02
"""Maximum mean difference of log-probs in half precision, in nats."""


@torch.no_grad()
def check_trie(engine: Any, batch: Batch, tokens: int) -> None:
    """Compare the first micro-batch with some of its rows one by one, in the model's own attention and output layer.

    Args:
        engine: over a ``PolicyForward``.
        batch: at least one row.
        tokens: maximum tokens per micro-batch.

    Raises:
        CoevoError: the log-probs differ, or the model has no forward pass for a trie.
    """
    micro = tries(batch, range(len(batch)), tokens)[0]
    chosen = np.unique(np.linspace(0, len(micro) - 1, ROWS).astype(int)).tolist()
    kind = bare(engine.module.model).config.model_type
    try:
        packed, _ = engine(pack_trie(batch, micro).to(engine.device))
    except torch.OutOfMemoryError:
        raise  # too large a micro-batch, which rows would exceed as well
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise CoevoError(f"a {kind} policy cannot forward a trie ({reason}): set update.packing=rows") from None
    single = [engine(pack_rows(batch, [micro[index]]).to(engine.device))[0][0] for index in chosen]
    gaps = torch.cat([_gaps(packed[index], row) for index, row in zip(chosen, single, strict=True)])
    _judge(gaps, _half(engine.module), kind)


def _gaps(packed: Tensor, single: Tensor) -> Tensor:
    return (packed[: len(single)] - single).abs()


def _half(module: nn.Module) -> bool:
    return any(parameter.dtype != torch.float32 for parameter in module.parameters())


def _judge(gaps: Tensor, half: bool, kind: str) -> None:
    found, allowed, name = (gaps.mean(), MEAN, "on average") if half else (gaps.max(), MOST, "at most")
    if not float(found) <= allowed:
        raise CoevoError(
            f"log-probs of a {kind} policy in a trie differ from those of single rows by {float(found):.2g} nats, "
            f"allowed is {allowed} {name}: set update.packing=rows"
        )
