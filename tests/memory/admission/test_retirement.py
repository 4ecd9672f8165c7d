"""Entries that a person retired do not come back by an admission."""

from dataclasses import replace

from coevo.memory.admission.retirement import RETIRED, barred
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Ruling
from coevo.records.entry import Entry, entry_id

ENTRY = Entry(entry_id("s", "mug in safe"), "mug in safe", "", "", "mug", "s", "train", ("1/r/t/0",), 1, 1)
RULING = Ruling("00000002/000000", 2, "s", "", RETIRED, "stale (retired by me)", (ENTRY.id,))


def test_a_retired_entry_and_its_present_text_are_barred_until_it_is_active_again(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=(ENTRY,)))
    assert barred(bank) == frozenset()
    edited = replace(ENTRY, strategy="mug in drawer", edited=2, retired=2)
    bank.merge(BankChange(entries=(edited,), operations=(RULING,)))
    assert barred(bank) == {ENTRY.id, entry_id("s", "mug in drawer")}
    bank.merge(BankChange(entries=(replace(edited, retired=-1),)))
    assert barred(bank) == frozenset()
