"""Digests of the weights in a vLLM server (``--worker-extension-cls coevo_worker.Digests``).

vLLM joins tensors of a checkpoint (query, key and value; gate and up) and pads the vocabulary, so a digest is of the
rows that came from one tensor. On a CPU it packs the weights of linear layers into a form that cannot be read: their
digests are taken just before. A tensor of which a worker has only a part, as with tensor parallelism, has no digest.
The import also makes our backend of the weight transfer known.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensor_digest import digest_of
from vllm.distributed.weight_transfer import WeightTransferEngineFactory
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.platforms import current_platform

Shape = Sequence[int]
_pack = UnquantizedLinearMethod.process_weights_after_loading


def _digest_and_pack(method: Any, layer: Any) -> None:
    """Keep shape and digest of each tensor in a layer, then pack it."""
    if not layer.weight.is_meta:
        sizes = getattr(layer, "output_partition_sizes", [len(layer.weight)])
        layer.coevo_parts = [([*part.shape], digest_of(part)) for part in layer.weight.split(sizes)]
    _pack(method, layer)


if current_platform.is_cpu():
    UnquantizedLinearMethod.process_weights_after_loading = _digest_and_pack
WeightTransferEngineFactory.register_engine("gloo", "coevo_gloo", "GlooReceiver")  # imported where it is asked for


class Digests:
    """Methods that a worker of vLLM gets."""

    model_runner: Any

    def coevo_digests(self, shapes: Mapping[str, Shape]) -> dict[str, str]:
        """Digest of each tensor of a checkpoint that the model has whole; empty for a parameter from no such tensor.

        Args:
            shapes: of the tensors of the checkpoint, by name.
        """
        model = self.model_runner.get_model()
        left = dict.fromkeys((name for name, _ in model.named_parameters()), "")
        found: dict[str, str] = {}
        for name, shape in shapes.items():
            for parameter, part, first in _sources(model, name, shapes):
                left.pop(parameter, None)
                value = _of_parameter(model, parameter, part, first, [*shape])
                found |= {} if value is None else {name: value}
        return left | found


def _sources(model: Any, name: str, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, int, int]]:
    """Parameter that holds a tensor of the checkpoint, its place among the joined ones, and its first row."""
    layer, _, kind = name.rpartition(".")
    for joined, parts in [("", [""]), *getattr(model, "packed_modules_mapping", {}).items()]:
        for index in [index for index, part in enumerate(parts) if layer.endswith(part)][:1]:
            stem = layer.removesuffix(parts[index])
            before = sum(shapes.get(f"{stem}{part}.{kind}", [0])[0] for part in parts[:index])
            if _module(model, stem + joined) is not None:
                yield f"{stem}{joined}.{kind}", index, before


def _of_parameter(model: Any, parameter: str, part: int, first: int, shape: list[int]) -> str | None:
    """Digest of the rows of a parameter that one tensor has become."""
    path, _, kind = parameter.rpartition(".")
    module = _module(model, path)
    if kind == "weight" and hasattr(module, "coevo_parts"):
        return next((value for there, value in module.coevo_parts[part : part + 1] if there == shape), None)
    values = getattr(module, kind, None)
    if values is None:
        return None
    rows = values[first : first + shape[0]] if shape else values
    return digest_of(rows) if [*rows.shape] == shape else None


def _module(model: Any, path: str) -> Any:
    try:
        return model.get_submodule(path)
    except AttributeError:
        return None
