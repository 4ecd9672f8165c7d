"""Check of the packing: a trie gives the log-probs that the model gives for single rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from coevo.models.trainer.microbatches import tries
from coevo.models.trainer.packed_forward import bare
from coevo.models.trainer.packing import PaddedRows, pack_rows, pack_trie
from coevo.models.trainer.update_batch import Batch
from coevo.utilities.errors import CoevoError

ROWS: Final = 8
"""Maximum number of rows that are compared."""
MOST: Final = 1e-4
"""Maximum difference of a log-prob in float32, in nats."""
MEAN: Final = (0.02, 0.1)
"""Mean difference of log-probs that half precision always has, and the most that it may have, in nats."""
NOISE: Final = 2.0
"""Mean difference allowed between these, as a multiple of what one column of padding makes: the deeper a model, the
more its rounding adds up (random weights on a GPU: 0.007 nats at 0.6B parameters, 0.03 at 4B).
"""


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
    packed = _of_trie(engine, batch, micro, kind)
    rows = [pack_rows(batch, [micro[index]]).to(engine.device) for index in chosen]
    single = [engine(row)[0][0] for row in rows]
    gaps = _gaps([packed[index] for index in chosen], single)
    if _half(engine.module):
        noise = _gaps([engine(_padded(row))[0][0] for row in rows], single)
        _judge(gaps.mean(), allowed(noise), "on average", kind)
    else:
        _judge(gaps.max(), MOST, "at most", kind)


def allowed(noise: Tensor) -> float:
    """Mean difference that half precision may have, in nats, where one column of padding changes log-probs by these."""
    return float((NOISE * noise.mean()).clamp(*MEAN))


def _of_trie(engine: Any, batch: Batch, micro: list[int], kind: str) -> Tensor:
    """Log-probs of a micro-batch as a trie."""
    try:
        return engine(pack_trie(batch, micro).to(engine.device))[0]  # type: ignore[no-any-return]
    except torch.OutOfMemoryError:
        raise  # too large a micro-batch, which rows would exceed as well
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise CoevoError(f"a {kind} policy cannot forward a trie ({reason}): set update.packing=rows") from None


def _gaps(found: Sequence[Tensor], single: Sequence[Tensor]) -> Tensor:
    return torch.cat([(other[: len(row)] - row).abs() for other, row in zip(found, single, strict=True)])


def _padded(rows: PaddedRows) -> PaddedRows:
    """Rows with one more column of padding: the same computation, rounded in another way."""
    wider = {name: functional.pad(getattr(rows, name), (1, 0)) for name in ("ids", "positions", "real")}
    return replace(rows, **wider)


def _half(module: nn.Module) -> bool:
    return any(parameter.dtype != torch.float32 for parameter in module.parameters())


def _judge(found: Tensor, most: float, measure: str, kind: str) -> None:
    if not float(found) <= most:
        raise CoevoError(
            f"log-probs of a {kind} policy in a trie differ from those of single rows by {float(found):.2g} nats, "
            f"allowed is {most:.2g} {measure}: set update.packing=rows"
        )
