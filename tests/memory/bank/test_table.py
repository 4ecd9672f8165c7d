"""A table that cannot be opened gets its content back from an older version, and nothing is moved in vain."""

import random
from dataclasses import replace

import pytest
from support.small_run import entry

from coevo.memory.bank import table
from coevo.memory.bank.bank import Bank, StoredBank
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_files import manifest_name
from coevo.memory.bank.opening import ASIDE, require_files
from coevo.memory.bank.table import FollowedTable, VersionedTable
from coevo.memory.stats import Stats
from coevo.utilities.errors import CoevoError


@pytest.fixture
def marks(tmp_path):
    """Versions and hashes of three revisions of a bank; the last manifest of its counters is damaged."""
    bank, found = Bank(tmp_path), []
    for retrievals in range(3):
        bank.merge(BankChange(stats=(Stats("e", retrievals),)))
        found.append((bank.versions(), bank.hashes()))
    newest(tmp_path, found).write_bytes(b"no manifest")
    return found


def newest(bank, marks):
    return bank / "stats.lance" / manifest_name(marks[-1][0]["stats"])


@pytest.mark.parametrize(("revision", "restored"), [(0, ["stats"]), (1, [])])
def test_content_comes_back_once_the_damaged_manifest_is_set_aside(tmp_path, marks, revision, restored):
    bank = Bank(tmp_path)
    assert [VersionedTable(tmp_path, name).openable() for name in ("entries", "stats")] == [True, False]
    assert bank.restore(*marks[revision]) == restored, "without its newest version the table has that of revision 1"
    assert bank.stats() == Bank(tmp_path).stats() == {"e": Stats("e", revision)}
    assert bank.hashes() == Bank(tmp_path).hashes() == marks[revision][1]


def test_nothing_is_set_aside_for_content_that_cannot_come_back(tmp_path, marks):
    versions, hashes = marks[0]
    with pytest.raises(CoevoError, match=r"bank table stats: version \d+ has content"):
        Bank(tmp_path).restore(versions, hashes | {"stats": "f" * 64})
    assert newest(tmp_path, marks).read_bytes() == b"no manifest"
    assert not (tmp_path / "stats.lance" / ASIDE).exists()


@pytest.mark.parametrize("digit", ["0", "f"])
def test_a_recorded_version_with_other_content_is_named_with_its_place_when_it_is_read(tmp_path, marks, digit):
    versions, hashes = marks[0]
    view = StoredBank(tmp_path).at(versions, hashes | {"stats": digit * 64}, "run 'first', revision 3: ")
    assert view.entries() == []
    for _ in range(2):
        with pytest.raises(CoevoError, match=f"^run 'first', revision 3: bank table stats: .* recorded {digit * 12}:"):
            view.stats()
    assert StoredBank(tmp_path).at(versions, hashes).stats() == {"e": Stats("e", 0)}


def drawn_versions(directory, seed, count):
    """Versions and hashes of the entries after drawn admissions, edits, retirements and restorations."""
    bank, draws, found = Bank(directory), random.Random(seed), []
    for step in range(count):
        held = bank.entries()
        kind = draws.choice(("admit", "admit", "edit", "retire", "restore", "nothing"))
        if kind == "admit" or not held:
            changed = [entry(f"lesson {step} {number}", "mug", "go", step) for number in range(draws.randrange(1, 9))]
        else:
            new = {"edit": {"strategy": f"edited at {step}"}, "retire": {"retired": step}}.get(kind, {})
            changed = [replace(each, **new) for each in draws.sample(held, min(3, len(held)))]
        if kind == "restore" and len(found) > 2:
            bank.restore(*draws.choice(found))
        else:
            bank.merge(BankChange(entries=tuple(changed)))
        found.append((bank.versions(), bank.hashes()))
    return [(versions["entries"], hashes["entries"]) for versions, hashes in found]


@pytest.mark.parametrize("seed", range(3))
def test_versions_that_are_followed_or_jumped_to_have_their_rows(tmp_path, seed):
    marks = drawn_versions(tmp_path, seed, 16)
    jumps = random.Random(seed).sample(marks, len(marks))
    followed = FollowedTable(tmp_path, "entries")
    for version, wanted in [*marks, *jumps]:
        whole = StoredBank(tmp_path).at(dict.fromkeys(Bank(tmp_path).versions(), 1) | {"entries": version}).rows()
        assert followed.rows(version, wanted) == whole


def test_a_version_is_followed_without_the_files_that_are_known(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=(entry("first", "mug", "go", 0),)))
    followed = FollowedTable(tmp_path, "entries")
    followed.rows(bank.versions()["entries"], bank.hashes()["entries"])
    known = list((tmp_path / "entries.lance" / "data").iterdir())
    bank.merge(BankChange(entries=(entry("second", "mug", "go", 1),)))
    for file in known:
        file.write_bytes(b"damaged")
    version, wanted = bank.versions()["entries"], bank.hashes()["entries"]
    assert followed.rows(version, wanted).num_rows == 2
    with pytest.raises(CoevoError, match="entries"):
        FollowedTable(tmp_path, "entries").rows(version, wanted)
    with pytest.raises(CoevoError, match="entries"):
        followed.rows(version, "f" * 64)


@pytest.mark.parametrize("claimed", [{7: 2**60}, {7: 2**17 + 1}, {2**32: 1}, {2**62: 2**62}])
def test_rows_that_a_manifest_claims_beyond_all_measure_are_not_asked_for(tmp_path, monkeypatch, claimed):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=(entry("first", "mug", "go", 0),)))
    followed = FollowedTable(tmp_path, "entries")
    version, wanted = bank.versions()["entries"], bank.hashes()["entries"]
    whole = followed.rows(version, wanted)

    def forged(*asked):
        found = require_files(*asked)
        return replace(found, fragments={**found.fragments, **claimed})

    monkeypatch.setattr(table, "require_files", forged)
    monkeypatch.setattr(table, "range", lambda count: pytest.fail(f"{count} rows"), raising=False)
    assert followed.rows(version, wanted) == whole
