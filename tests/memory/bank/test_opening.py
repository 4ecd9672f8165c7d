"""A sound version is read whatever has happened to the others."""

import pytest

from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.errors import UnreadableError
from coevo.memory.bank.files import manifest_name
from coevo.memory.bank.opening import ASIDE, open_version, set_aside
from coevo.memory.stats import Stats


@pytest.fixture
def damaged(tmp_path):
    """A bank whose last version of the counters has a damaged manifest, and the numbers of the three versions."""
    bank, versions = Bank(tmp_path), []
    for retrievals in range(3):
        bank.merge(BankChange(stats=(Stats("e", retrievals),)))
        versions.append(bank.versions()["stats"])
    (tmp_path / "stats.lance" / manifest_name(versions[-1])).write_bytes(b"no manifest")
    return tmp_path, versions


def test_an_earlier_version_is_read_and_the_damaged_one_is_refused(damaged):
    bank, (first, second, last) = damaged
    found = [open_version(bank, "stats", version).to_arrow()["retrievals"].to_pylist() for version in (first, second)]
    assert [counts[-1:] for counts in found] == [[0], [1]]
    with pytest.raises(UnreadableError):
        open_version(bank, "stats", last)


def test_a_manifest_that_cannot_be_opened_is_set_aside_and_no_other(damaged):
    bank, (_, second, last) = damaged
    set_aside(bank, "stats")
    table = bank / "stats.lance"
    assert [path.name for path in (table / ASIDE).iterdir()] == [manifest_name(last).partition("/")[2]]
    assert Bank(bank).versions()["stats"] == second
