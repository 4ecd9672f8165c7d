"""Entries that a person retired do not come back by an admission."""

from dataclasses import replace

import pytest

from coevo.memory.admission.rulings import RETIRED, barred, reasons, ruling
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Ruling
from coevo.memory.writers.writer import Proposal
from coevo.records.entry import Entry, entry_id
from coevo.utilities.errors import CoevoError

ENTRY = Entry(entry_id("s", "mug in safe"), "mug in safe", "", "", "mug", "s", "train", ("1/r/t/0",), 1, 1)
OTHER = replace(ENTRY, id=entry_id("s", "pan in sink"), strategy="pan in sink")
RULING = Ruling("00000002/000000", 2, "s", "", RETIRED, "stale (retired by me)", (ENTRY.id,))


def test_a_retired_entry_and_its_present_text_are_barred_until_it_is_active_again(tmp_path):
    bank = Bank(tmp_path)
    bank.merge(BankChange(entries=(ENTRY,)))
    assert barred(bank) == frozenset()
    edited = replace(ENTRY, strategy="mug in drawer", edited=2, retired=2)
    removed = replace(OTHER, retired=2), Ruling("00000002/000001", 2, "s", "", "removed", "score", (OTHER.id,))
    bank.merge(BankChange(entries=(edited, removed[0]), operations=(RULING, removed[1])))
    assert barred(bank) == {ENTRY.id, entry_id("s", "mug in drawer")}
    bank.merge(BankChange(entries=(replace(edited, retired=-1),)))
    assert barred(bank) == frozenset()


def test_of_several_retirements_the_latest_reason_counts_and_no_other_ruling_does():
    others = [replace(RULING, outcome=outcome, entries=(outcome,)) for outcome in ("applied", "rejected", "removed")]
    assert reasons([RULING, *others, replace(RULING, reason="again")]) == {ENTRY.id: "again"}


def test_a_proposal_loses_its_barred_candidates_and_nothing_else():
    proposal = Proposal((ENTRY, OTHER), {OTHER.id: 0.5}, counts={"x": 1.0})
    assert proposal.without({ENTRY.id}) == replace(proposal, entries=(OTHER,))
    assert proposal.without(frozenset()) == proposal


def test_a_retirement_records_who_and_why():
    assert ruling(ENTRY, " stale\n", "me", 2) == RULING
    assert ruling(ENTRY, "x" * 300, "y" * 100, 2).reason == f"{'x' * 300} (retired by {'y' * 100})"


@pytest.mark.parametrize(
    ("reason", "by", "says"),
    [
        (" ", "me", r"--reason = ' ': is empty"),
        ("stale", "", r"--by = '': is empty"),
        ("x" * 301, "me", r"--reason = .*: has 301 characters: shorten it to 300"),
        ("stale", "y" * 101, r"--by = .*: has 101 characters: shorten it to 100"),
        ("a\x1bb", "me", r"--reason = 'a\\x1bb': holds a character that is not printable"),
    ],
    ids=["no reason", "no name", "long reason", "long name", "unprintable"],
)
def test_a_retirement_without_a_plain_reason_or_name_is_refused(reason, by, says):
    with pytest.raises(CoevoError, match=says):
        ruling(ENTRY, reason, by, 2)
