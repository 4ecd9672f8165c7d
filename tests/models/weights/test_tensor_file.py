"""A streamed file has the bytes that safetensors writes; a failure leaves the file that was there."""

import signal
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from support.disk import no_room
from support.killed import killed

from coevo.models.weights.tensor_file import DTYPES, Spec, in_file_order, write_tensors
from coevo.utilities import free_space
from coevo.utilities.errors import CoevoError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name != "__metadata__"
)
TENSORS = st.dictionaries(NAMES, st.tuples(st.sampled_from(list(DTYPES)), st.lists(st.integers(0, 3), max_size=3)))
DYING = """
import os, signal, sys
from pathlib import Path

import torch

from coevo.models.weights.tensor_file import Spec, write_tensors

def tensors():
    yield torch.zeros(2)
    os.kill(os.getpid(), signal.SIGKILL)

write_tensors(Path(sys.argv[1]), {name: Spec(torch.float32, (2,)) for name in "ab"}, tensors())
"""


def stream(path, tensors, metadata=None):
    specs = {name: Spec(value.dtype, tuple(value.shape)) for name, value in tensors.items()}
    write_tensors(path, specs, (tensors[name] for name in in_file_order(specs)), metadata)


@given(shapes=TENSORS, metadata=st.none() | st.just({"format": "pt"}))
def test_it_has_the_bytes_of_the_library(tmp_path_factory, shapes, metadata):
    directory = tmp_path_factory.mktemp("tensors")
    tensors = {
        name: torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
        for name, (dtype, shape) in shapes.items()
    }
    save_file(tensors, directory / "library", metadata=metadata)
    stream(directory / "ours", tensors, metadata)
    assert (directory / "ours").read_bytes() == (directory / "library").read_bytes()


def test_a_view_is_written_by_its_values(tmp_path):
    value = torch.arange(12.0).reshape(3, 4).t()
    stream(tmp_path / "view", {"a": value})
    assert torch.equal(load_file(tmp_path / "view")["a"], value)


def test_one_tensor_is_made_at_a_time(tmp_path):
    alive = []
    specs = {name: Spec(torch.float32, (4,)) for name in "abc"}

    def values():
        for name in in_file_order(specs):
            alive.append(name)
            assert (tmp_path / "file.part").stat().st_size >= 16 * (len(alive) - 1)
            yield torch.zeros(4)

    write_tensors(tmp_path / "file", specs, values())
    assert alive == ["a", "b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_value_unlike_its_spec_is_refused_and_the_old_file_stays(tmp_path):
    stream(tmp_path / "file", {"a": torch.ones(2)})
    with pytest.raises(ValueError, match=r"a: a torch.float32 of shape \(3,\) is not"):
        write_tensors(tmp_path / "file", {"a": Spec(torch.float32, (2,))}, [torch.zeros(3)])
    assert load_file(tmp_path / "file")["a"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_leaves_the_old_file(tmp_path):
    stream(tmp_path / "file", {"a": torch.ones(2)})
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with no_room(), pytest.raises(OSError, match="File too large"):
            stream(tmp_path / "file", {"a": torch.zeros(2)})
    finally:
        signal.signal(signal.SIGXFSZ, before)
    assert load_file(tmp_path / "file")["a"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_without_enough_room_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(free_space.shutil, "disk_usage", lambda directory: SimpleNamespace(free=3 << 20))
    with pytest.raises(CoevoError, match=r"writing file needs 4 MiB and 3 MiB are free: make room, see `coevo gc`"):
        write_tensors(tmp_path / "file", {"a": Spec(torch.float32, (1 << 20,))}, iter(()))
    assert list(tmp_path.iterdir()) == []


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    stream(tmp_path / "file", {"a": torch.ones(2), "b": torch.ones(2)})
    killed(DYING, tmp_path / "file")
    assert load_file(tmp_path / "file")["a"].tolist() == [1, 1]
    stream(tmp_path / "file", {"a": torch.zeros(2)})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
