"""The bank on a real LanceDB: merging, hashing, restoring, and kills in between."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from attempts import SAFE, attempt
from support.evidence import evidence

from coevo.configs.bank.writer import QuoteContrastConfig
from coevo.memory.bank.bank import Bank, Retrieval, StoredBank, why
from coevo.memory.bank.change import BankChange, Judged, Ruling
from coevo.memory.stats import Stats, tally
from coevo.memory.writers.quote.contrast import writer
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import Entry, Verdict, entry_id
from coevo.records.task import BY_SCOPE
from coevo.utilities.errors import CoevoError

ROOT = Path(__file__).resolve().parents[3]


def entry(name, revision=1, **changes):
    text = f"lotus {name} in safe"
    base = Entry(entry_id("lotus", text), text, name, "go safe", f"lotus {name}", "lotus", "train", (), 1, revision)
    return replace(base, sources=(f"{revision}/rollout/t/0", f"{revision}/rollout/u/1"), **changes)


def judged(*entries, admitted=True, revision=1):
    names = tuple(each.id for each in entries)
    return Judged(Verdict(revision, names, admitted, 0.5, 0.25, 0.25, 0.125, 16, 0.0), entries)


def change(revision):
    """Adds two entries and counts and judges them."""
    new = (entry(f"mug{revision}", revision), entry(f"cup{revision}", revision))
    return BankChange(new, tuple(Stats(each.id, revision, 1) for each in new), (judged(*new, revision=revision),))


def test_what_is_merged_is_read_back_after_reopening(tmp_path):
    path = tmp_path / "a ünusual place" / "bank"
    rejected = judged(entry("spoon"), admitted=False)
    merged = replace(change(1), judged=(*change(1).judged, rejected))
    Bank(path).merge(merged)
    bank = Bank(path)
    assert sorted(bank.entries(), key=lambda e: e.id) == sorted(merged.entries, key=lambda e: e.id) == bank.active()
    assert bank.stats() == {row.id: row for row in merged.stats}
    assert set(bank.judged()) == set(merged.judged)


def test_edits_replace_and_retired_entries_stay_but_are_not_active(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=(entry("mug"), entry("cup"))))
    bank.merge(BankChange(entries=(entry("mug", edited=2, condition="now"), entry("cup", retired=2))))
    assert {(e.condition, e.edited, e.retired) for e in bank.entries()} == {("now", 2, -1), ("cup", 1, 2)}
    assert [e.condition for e in bank.active()] == ["now"]


def test_merging_the_same_change_twice_changes_nothing(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    hashes, versions = bank.hashes(), bank.versions()
    bank.merge(change(1))
    Bank(tmp_path).merge(change(1))
    assert (
        (Bank(tmp_path).hashes(), Bank(tmp_path).versions()) == (hashes, versions) == (bank.hashes(), bank.versions())
    )


def test_only_altered_tables_get_one_version_each(tmp_path):
    bank = Bank(tmp_path)
    before = bank.versions()
    bank.merge(BankChange())
    assert bank.versions() == before
    bank.merge(BankChange(stats=tuple(Stats(f"e{i}") for i in range(50))))
    assert bank.versions() == before | {"stats": before["stats"] + 1}


def test_batches_judged_in_one_revision_are_all_kept(tmp_path):
    bank = Bank(tmp_path)
    batches = {judged(entry("mug")), judged(entry("cup"), admitted=False), judged(entry("mug"), entry("cup"))}
    for batch in batches:
        bank.merge(BankChange(judged=(batch,)))
    assert len(bank.judged()) == 3
    assert set(bank.judged()) == batches


def test_hashes_do_not_depend_on_order_or_number_of_writes(tmp_path):
    one, many = Bank(tmp_path / "one"), Bank(tmp_path / "many")
    changes = [change(revision) for revision in range(1, 6)]
    one.merge(
        BankChange(
            tuple(e for c in changes for e in c.entries),
            tuple(s for c in changes for s in c.stats),
            tuple(j for c in changes for j in c.judged),
        )
    )
    for each in reversed(changes):
        many.merge(each)
    assert one.hashes() == many.hashes()
    assert one.versions() != many.versions()


def test_operations_are_restored_and_read_at_old_versions_like_the_rest(tmp_path):
    bank = Bank(tmp_path)
    first, second = (
        Ruling(f"{revision:08d}/000000", revision, "lotus", 'UPVOTE("x")', "rejected", "no such entry")
        for revision in (1, 2)
    )
    bank.merge(BankChange(operations=(first,)))
    versions, hashes = bank.versions(), bank.hashes()
    bank.merge(BankChange(operations=(second,)))
    assert bank.operations() == [first, second]
    assert bank.at(versions).operations() == [first]
    assert bank.restore(versions, hashes) == ["operations"]
    assert bank.operations() == [first]


def test_restore_brings_content_back_as_a_new_version(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    versions, hashes, entries = bank.versions(), bank.hashes(), bank.entries()
    bank.merge(BankChange(entries=(*change(2).entries, replace(entries[0], retired=2)), judged=change(2).judged))
    later = bank.versions()
    assert bank.restore(versions, hashes) == ["entries", "verdicts"]
    assert (bank.hashes(), bank.entries()) == (hashes, entries) == (Bank(tmp_path).hashes(), Bank(tmp_path).entries())
    assert bank.versions()["entries"] == later["entries"] + 1
    assert bank.restore(versions, hashes) == []
    bank.merge(change(3))
    assert len(bank.entries()) == 4


def test_forward_again_is_the_same_call(tmp_path):
    bank = Bank(tmp_path)
    marks = []
    for revision in (1, 2, 3):
        bank.merge(change(revision))
        marks.append((bank.versions(), bank.hashes()))
    for versions, hashes in (marks[0], marks[2], marks[1], marks[2]):
        bank.restore(versions, hashes)
        assert bank.hashes() == hashes


def test_an_old_version_is_read_without_touching_the_live_bank(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    versions, hashes = bank.versions(), bank.hashes()
    bank.merge(change(2))
    old = bank.at(versions)
    assert (old.hashes(), old.versions()) == (hashes, versions)
    assert {e.condition for e in old.active()} == {"mug1", "cup1"}
    bank.merge(change(3))
    assert len(bank.entries()) == 6
    assert len(old.entries()) == 2


def test_a_version_that_is_gone_names_the_table_and_leaves_it_alone(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    bank.merge(change(2))
    now = bank.hashes()
    with pytest.raises(CoevoError, match="bank table stats: version 99 is gone"):
        bank.restore(bank.versions() | {"stats": 99}, now | {"stats": "0" * 64})
    with pytest.raises(CoevoError, match="bank table entries: version 98 is gone"):
        bank.at(bank.versions() | {"entries": 98})
    assert bank.hashes() == now
    bank.merge(change(3))
    assert len(bank.entries()) == 6


@pytest.mark.parametrize("digit", ["0", "f"])
def test_a_version_with_other_content_is_not_restored(tmp_path, digit):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    old = bank.versions()
    bank.merge(change(2))
    now, versions = bank.hashes(), bank.versions()
    said = f"entries: version 2 has content [0-9a-f]{{12}}, not the recorded {digit * 12}: `coevo fsck`"
    with pytest.raises(CoevoError, match=said):
        bank.restore(old, now | {"entries": digit * 64})
    assert (bank.hashes(), bank.versions()) == (now, versions)


def test_a_copied_bank_is_a_bank_of_its_own(tmp_path):
    bank = Bank(tmp_path / "a")
    bank.merge(change(1))
    versions, hashes = bank.versions(), bank.hashes()
    bank.merge(change(2))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    branch = Bank(tmp_path / "b")
    branch.restore(versions, hashes)
    assert len(branch.entries()) == 2
    assert len(Bank(tmp_path / "a").entries()) == 4


def test_hashing_an_unchanged_bank_reads_nothing(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=tuple(entry(f"mug{i}") for i in range(5000))))
    started = time.process_time()
    first = bank.hashes()
    read = time.process_time()
    assert bank.hashes() == first
    assert time.process_time() - read < (read - started) / 10


CHILD = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = ["tests", "tests/memory/bank"]
from test_bank import change
from coevo.memory.bank.bank import Bank, StoredBank
from coevo.memory.bank.table import VersionedTable

path, die_at = Path(sys.argv[1]), sys.argv[2]
upsert = VersionedTable.upsert

def dying(self, rows):
    if die_at == self._table.name:
        os.kill(os.getpid(), signal.SIGKILL)
    upsert(self, rows)

bank = Bank(path)
for revision in range(1, 400):
    if revision == 3:
        VersionedTable.upsert = dying
    bank.merge(change(revision))
    print(revision, flush=True)
"""


def child(path, die_at):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), die_at], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_a_kill_at_any_moment_loses_no_finished_merge_and_leaves_no_half_table(tmp_path):
    with child(tmp_path / "bank", "never") as process:
        for _ in range(3):
            done = int(process.stdout.readline())
        time.sleep(0.013)
        process.kill()
        done = max([done, *map(int, process.stdout.read().split())])
    assert process.returncode == -signal.SIGKILL
    bank = Bank(tmp_path / "bank")
    held = {e.edited for e in bank.entries()}
    assert set(range(1, done + 1)) <= held <= set(range(1, done + 2))
    assert len(bank.entries()) == 2 * len(held)
    whole = Bank(tmp_path / "whole")
    for revision in range(1, done + 2):
        whole.merge(change(revision))
    bank.merge(change(done + 1))
    assert bank.hashes() == whole.hashes()


@pytest.mark.full
def test_a_kill_between_two_tables_is_mended_by_restore(tmp_path):
    with child(tmp_path / "bank", "stats") as process:
        assert process.stdout.read().split() == ["1", "2"]
    assert process.returncode == -signal.SIGKILL
    whole = Bank(tmp_path / "whole")
    whole.merge(change(1))
    whole.merge(change(2))
    bank = Bank(tmp_path / "bank")
    assert bank.hashes() != whole.hashes()
    assert bank.restore(whole.versions(), whole.hashes()) == ["entries"]
    assert bank.hashes() == whole.hashes()


def test_importing_the_bank_is_light_and_keeps_lance_quiet():
    modules = "coevo.memory.bank.bank, coevo.memory.retrieval.index"
    code = f"import os, sys, {modules}; assert os.environ['LANCE_LOG'] == 'error'; print(*sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "LANCE_LOG"}
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env=environment, text=True).split()
    assert not {"lancedb", "sklearn", "scipy"} & set(loaded)


@pytest.mark.parametrize("retired", [0, 2])
def test_size_rows_and_counters(tmp_path, retired):
    bank = Bank(tmp_path)
    bank.merge(change(1))
    bank.merge(BankChange(entries=(replace(change(1).entries[0], retired=retired),)))
    counted, other = change(1).stats
    assert (bank.size(), bank.active(), bank.rows().num_rows) == (1, [change(1).entries[1]], 2)
    assert bank.stats() == {counted.id: counted, other.id: other}


def test_reading_makes_nothing(tmp_path):
    path = tmp_path / "bank"
    with pytest.raises(CoevoError, match=r"bank table entries cannot be read: .*entries\.lance does not exist"):
        StoredBank(path)
    assert not path.exists()
    Bank(path).merge(change(1))
    assert StoredBank(path).hashes() == Bank(path).hashes()
    shutil.rmtree(path / "operations.lance")
    with pytest.raises(CoevoError, match="bank table operations cannot be read"):
        StoredBank(path)
    assert not (path / "operations.lance").exists()


def verdict(revision, admitted, *entries):
    return Judged(Verdict(revision, tuple(e.id for e in entries), admitted, 0.5, 0.25, 0.25, 0.1, 8, 0.0), entries)


def test_an_entry_leads_to_sources_verdicts_and_uses(tmp_path):
    written = writer(QuoteContrastConfig(), BY_SCOPE).write(evidence([attempt("0", SAFE, success=True)]))
    mug, heat = written.entries
    shown = attempt("1", [(*SAFE[0], (heat.id, mug.id))], success=True)
    unshown = attempt("2", [(*SAFE[0], (heat.id,))], success=False)
    first, second, without = verdict(1, False, mug, heat), verdict(2, True, mug), verdict(3, True, mug)
    bank = Bank(tmp_path)
    bank.merge(BankChange((mug,), tally({}, [shown, unshown]), (second, first), (without,)))
    rows = episodes_to_table([shown, unshown]).to_pylist()

    found = why(bank, mug.id, rows)
    assert (found.entry, found.admitted, found.judged) == (mug, True, (first, second))
    assert (found.left_out, found.stats.retrievals, found.stats.successes) == ((without,), 1, 1)
    assert found.retrievals == (Retrieval(shown.id, shown.task.id, 1, True),)

    rejected = why(bank, heat.id, rows)
    assert (rejected.entry, rejected.admitted, rejected.judged, rejected.left_out) == (heat, False, (first,), ())
    assert [each.success for each in rejected.retrievals] == [True, False]


def test_an_entry_leads_to_the_operations_on_it_those_that_took_it_out_included(tmp_path):
    mug, heat = writer(QuoteContrastConfig(), BY_SCOPE).write(evidence([attempt("0", SAFE, success=True)])).entries
    merged = Ruling("00000002/000000", 2, "lotus", "MERGE(...)", "applied", "", (mug.id, heat.id))
    refused = Ruling("00000002/000001", 2, "lotus", f'UPVOTE("{mug.id}")', "rejected", "was merged before")
    removed = Ruling("00000003/000000", 3, "lotus", "", "removed", "score 0 is below 0.5", (mug.id,))
    bank = Bank(tmp_path)
    bank.merge(BankChange((mug, heat), operations=(removed, merged, refused)))
    assert why(bank, mug.id).operations == (merged, removed)
    assert why(bank, heat.id).operations == (merged,)


def test_an_unknown_entry_is_one_line(tmp_path):
    with pytest.raises(CoevoError, match=r"^entry 'nope' is not in this bank: .*coevo bank show"):
        why(Bank(tmp_path), "nope")
