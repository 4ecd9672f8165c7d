"""Digests of files, chunk by chunk: equal to those of tensors in memory, and different for every other value."""

import pytest
import torch
from safetensors.torch import save_file

from coevo.models.engines.vllm.expected import ExpectedDigests
from coevo.models.engines.vllm.server_check import WeightsError
from coevo.models.weights import tensor_digest
from coevo.models.weights.tensor_digest import digest_of
from coevo.utilities.errors import CoevoError

URL = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(tensor_digest, "WORDS", 8)


@pytest.mark.parametrize("into", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_file_has_the_digests_of_its_tensors_in_the_servers_precision(tmp_path, dtype, into):
    tensors = {str(size): torch.randn(size, generator=torch.Generator().manual_seed(size)) for size in (1, 7, 64, 1001)}
    save_file({name: value.to(dtype) for name, value in tensors.items()}, tmp_path / "model.safetensors")
    made = ExpectedDigests.of(tmp_path, into)
    assert made.values == {name: digest_of(value.to(dtype).to(into)) for name, value in tensors.items()}
    assert made.check([made.values], URL)
    assert not made.check([{"7": made.values["7"]}], URL)


def test_any_value_in_another_place_has_another_digest():
    values = torch.randn(300, generator=torch.Generator().manual_seed(0))
    seen = {digest_of(values)}
    for directory in range(300):
        changed = values.clone()
        changed[directory] += 1e-6
        swapped = values.clone()
        swapped[[directory, (directory + 17) % 300]] = values[[(directory + 17) % 300, directory]]
        seen |= {digest_of(changed), digest_of(swapped)}
    assert len(seen) == 601
    assert digest_of(values.reshape(20, 15)[:10]) == digest_of(values[:150])


def test_a_wrong_or_surplus_tensor_is_named_on_each_worker_that_holds_it_whole(tmp_path):
    save_file({"a": torch.zeros(3)}, tmp_path / "model.safetensors")
    made = ExpectedDigests.of(tmp_path, torch.float32)
    with pytest.raises(WeightsError, match=r"its a is not that of the files \(digest 12, expected "):
        made.check([{"a": "12"}], URL)
    with pytest.raises(WeightsError, match=r"its lm_head is not that of the files \(digest none, expected none\)"):
        made.check([made.values | {"lm_head": ""}], URL)
    assert made.check([made.values, made.values], URL)
    with pytest.raises(WeightsError, match=r"its a is not that of the files \(digest stale"):
        made.check([{"a": "stale"}, made.values], URL)


def test_a_file_that_is_none_is_one_line(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\x05\0\0\0\0\0\0\0nojson")
    with pytest.raises(CoevoError, match=r"model\.safetensors: not a safetensors file"):
        ExpectedDigests.of(tmp_path, torch.float32)
