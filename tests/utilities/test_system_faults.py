"""Refusals of the operating system, in one line, whichever library met them."""

import errno

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file
from support.disk import no_room
from support.small_run import CHANGES

from coevo.memory.bank.bank import Bank
from coevo.utilities.system_faults import fault, remedy


def refused(action):
    with no_room(), pytest.raises((OSError, RuntimeError, SafetensorError)) as caught:
        action()
    return caught.value


def test_lance_safetensors_and_python_say_the_same(tmp_path):
    bank = Bank(tmp_path / "bank")
    before = bank.hashes()
    errors = [
        refused(lambda: (tmp_path / "text").write_text("x")),
        refused(lambda: save_file({"x": np.zeros(9)}, tmp_path / "weights")),
        refused(lambda: bank.merge(CHANGES[1])),
    ]
    assert [fault(error).partition(": ")[0] for error in errors] == ["File too large"] * 3
    assert Bank(tmp_path / "bank").hashes() == before


def test_a_file_is_named(tmp_path):
    error = PermissionError(errno.EACCES, "ignored", str(tmp_path))
    assert fault(error).startswith(f"{tmp_path}: Permission denied: make it writable")


@pytest.mark.parametrize(
    "error", [ValueError("no"), OSError("no"), FileNotFoundError(errno.ENOENT, "no"), RuntimeError("(os error 2)")]
)
def test_another_error_is_not_the_systems(error):
    assert fault(error) is None


def test_a_program_s_message_gets_its_remedy():
    assert remedy("fatal: unable to write: No space left on device") == ": make room"
    assert remedy("error: index.lock' write error. Out of diskspace") == ": make room"
    assert remedy("fatal: bad object") == ""
