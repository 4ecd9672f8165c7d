"""A transfer has its directory to itself."""

import pytest

from coevo.lineage.remote.transfer_scratch import scratch_directory
from coevo.utilities.errors import CoevoError


def test_it_begins_empty_and_is_gone_afterwards(tmp_path):
    path = tmp_path / "runs" / ".first.pull"
    path.mkdir(parents=True)
    (path / "of a killed one").touch()
    with scratch_directory(path, "run 'first' is being pulled") as scratch:
        assert list(scratch.iterdir()) == []
        (scratch / "half").touch()
    assert not path.exists()


def test_a_second_one_is_refused_in_one_line_and_disturbs_nothing(tmp_path):
    path = tmp_path / "push"
    with scratch_directory(path, "run 'first' is being pushed") as scratch:
        (scratch / "half").touch()
        with (
            pytest.raises(CoevoError, match=r"^run 'first' is being pushed by another process: wait for it$"),
            scratch_directory(path, "run 'first' is being pushed"),
        ):
            pass
        assert (scratch / "half").exists()
