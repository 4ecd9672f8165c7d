"""Room on the disk for a run: checked before it starts, from what a revision writes."""

from collections.abc import Mapping
from pathlib import Path

import torch

from coevo.configs.run_config import RunConfig
from coevo.lineage.objects.cache import disk_usage
from coevo.models.policy.policy import PEFT_WEIGHTS, WEIGHTS
from coevo.models.weights.tensor_file import Spec, read_layout
from coevo.utilities.free_space import require_space


def require_start(config: RunConfig, policy: Path, sizes: Mapping[str, int], place: Path) -> None:
    """Check that the disk has room for what a run writes until its next revision.

    Args:
        config: of the run.
        policy: directory of the policy that it starts from.
        sizes: bytes of each artifact of its last revision; empty before the first one, which copies the policy.
        place: directory of the run.

    Raises:
        CoevoError: it has not.
    """
    held = disk_usage(policy)
    trained = 0 if config.update is None else held + (sizes.get("optimizer") or _optimizer(config, policy))
    require_space(place, trained + (0 if sizes else held), f"the next revision of run {place.name!r}")


def _optimizer(config: RunConfig, policy: Path) -> int:
    """Bytes of the optimizer's state before there is one: two moments and, for half precision, float32 weights."""
    assert config.update is not None
    path = next((policy / name for name in (PEFT_WEIGHTS, WEIGHTS) if (policy / name).is_file()), None)
    if path is None:
        return 0
    with path.open("rb") as file:
        specs = [spec for spec, _ in read_layout(file).values()]
    critic = sum(4 * _numbers(spec) + _state(spec) for spec in specs) if config.update.critic else 0
    return sum(map(_state, specs)) + critic


def _state(spec: Spec) -> int:
    return _numbers(spec) * (8 if spec.dtype == torch.float32 else 12)


def _numbers(spec: Spec) -> int:
    return spec.bytes // spec.dtype.itemsize
