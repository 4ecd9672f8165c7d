"""Proposals that wait for a person: stored as text, moved to the revision that applies them, or dropped."""

from dataclasses import replace

import pytest
from support.batches import entry

from coevo.memory.admission.admission import Decision
from coevo.memory.admission.pending_admission import REFUSED, Pending, changes_anything, takes_anything
from coevo.memory.bank.change import Judged, Ruling
from coevo.records.entry import Verdict

NEW = entry("größer", created=4, edited=4)
EDITED = entry("plate in drawer", created=2, edited=4)
GONE = entry("pan in sink", created=1, edited=3, retired=4)


def judged(candidate, admitted, revision=4):
    return Judged(Verdict(revision, (candidate.id,), admitted, 0.75, 0.25, 0.5, 0.125, 8, 0.0), (candidate,))


RULINGS = (
    Ruling("00000004/000000", 4, "s", 'ADD("x")', "applied", entries=("a",)),
    Ruling("00000004/000001", 4, "s", "nonsense", "rejected", "is no operation"),
    Ruling("00000004/000002", 4, "s", "", "removed", "score 0 is below 0.5", ("b",)),
)
PENDING = Pending(
    4,
    Decision(
        (NEW, EDITED, GONE), {NEW.id: 0.5, "a": 1.0}, (judged(NEW, True),), (judged(GONE, False),), RULINGS, {"m": 1.0}
    ),
    (NEW.id, "a"),
)


def test_a_later_revision_applies_it_as_if_it_had_been_made_there():
    later = PENDING.as_of(6)
    new, gone = replace(NEW, created=6, edited=6), replace(GONE, retired=6)
    assert later.decision == replace(
        PENDING.decision,
        entries=(new, replace(EDITED, edited=6), gone),
        judged=(judged(new, True, 6),),
        left_out=(judged(gone, False, 6),),
        operations=tuple(replace(each, id=f"00000006/00000{n}", revision=6) for n, each in enumerate(RULINGS)),
    )
    assert (later.revision, later.proposed) == (6, PENDING.proposed)
    assert later.as_of(4) == PENDING


def test_of_a_rejected_one_nothing_enters_or_leaves_and_the_record_is_kept():
    refused = replace(RULINGS[0], outcome="rejected", reason=REFUSED, entries=())
    assert PENDING.rejected() == replace(
        PENDING,
        decision=Decision(
            judged=(judged(NEW, False),), left_out=(judged(GONE, True),), operations=(refused, RULINGS[1])
        ),
    )


def test_it_survives_its_text_which_is_the_same_for_equal_ones():
    text = PENDING.text()
    assert Pending.parse(text) == PENDING
    assert text.startswith('{\n "decision": {\n  "begun": [],\n')
    assert text.endswith('"revision": 4\n}\n')
    assert "größer" in text
    turned = replace(PENDING.decision, utility=dict(reversed(PENDING.decision.utility.items())))
    assert replace(PENDING, decision=turned).text() == text
    with pytest.raises(ValueError, match="JSON"):
        replace(PENDING, decision=Decision(utility={"a": float("nan")})).text()


@pytest.mark.parametrize(
    ("decision", "changes"),
    [
        (Decision(entries=(NEW,)), True),
        (Decision(utility={"a": 1.0}), True),
        (Decision(judged=(judged(NEW, False),), operations=RULINGS, metrics={"m": 1.0}), False),
    ],
)
def test_entries_and_utilities_change_the_bank_and_verdicts_do_not(decision, changes):
    assert changes_anything(decision) is changes


@pytest.mark.parametrize(
    ("decision", "trials", "takes"),
    [
        (Decision(entries=(NEW,)), False, True),
        (Decision(entries=(replace(NEW, retired=3),)), False, False),
        (Decision(utility={"a": 1.0}), False, True),
        (Decision(), False, False),
        (Decision(), True, None),
        (Decision(begun=(NEW,)), True, None),
        (Decision(begun=(NEW,), ended=("a",)), True, False),
        (Decision(begun=(NEW,), ended=(NEW.id,), entries=(NEW,)), True, True),
    ],
)
def test_a_bank_that_only_retires_has_taken_nothing(decision, trials, takes):
    assert takes_anything(decision, trials) is takes
