"""Free space is asked for before anything is written, and sizes have units."""

from pathlib import Path

import pytest

from coevo.configs.sections import LARGE_OPTIMIZER
from coevo.utilities.errors import CoevoError
from coevo.utilities.free_space import require_space, size

FULL = Path("/proc")
"""A disk of 0 bytes."""


def test_room_for_exactly_what_is_written_is_enough():
    require_space(FULL, 0, "nothing")
    with pytest.raises(CoevoError, match=r"^/proc: a byte needs 1 B and 0 B are free: make room, see `coevo gc`"):
        require_space(FULL, 1, "a byte")


def test_the_disk_is_that_of_the_nearest_folder_that_exists(tmp_path):
    directory = tmp_path / "not" / "there"
    require_space(directory, 1, "a byte")
    with pytest.raises(CoevoError, match=rf"^{directory}: a library needs 1099511627776 GiB and "):
        require_space(directory, 2**70, "a library")
    assert not directory.parent.exists()


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"), (512, "512 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (-2048, "-2 KiB"), (999 * 1024, "999 KiB"),
        (1024**2, "1 MiB"), (1024**3, "1 GiB"), (900 * 1024**3, "900 GiB"), (999.4 * 1024, "999 KiB"),
        (999.6 * 1024, "1000 KiB"), (1023 * 1024**2, "1023 MiB"), (1500 * 1024**3, "1500 GiB"),
    ],
)  # fmt: skip
def test_a_size_has_at_least_three_digits_and_a_unit(count, shown):
    assert size(count) == shown


def test_the_next_unit_begins_with_1024():
    assert [size(1024**power - 1).split()[1] for power in (1, 2, 3)] == ["B", "KiB", "MiB"]


def test_an_optimizer_is_large_from_1_gib_on():
    assert size(LARGE_OPTIMIZER) == "1 GiB"
