"""Measurements of lessons: those of one life, the same in memory and from the stored bank."""

from dataclasses import replace

import pytest
from support.entries import entry

from coevo.configs.bank.bank_config import BankConfig
from coevo.memory.admission.admission import Decision
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import Judged
from coevo.memory.bank_state import BankState
from coevo.records.entry import Verdict, entered

LESSON, OTHER = entry("lesson"), entry("other")


def judged(revision, difference, *candidates, bound=0.1, admitted=False):
    lessons = candidates or (LESSON,)
    ids = tuple(lesson.id for lesson in lessons)
    verdict = Verdict(revision, ids, admitted, 0.5 + difference, 0.5, difference, 0.1, 8, 0.0, bound)
    return Judged(verdict, tuple(lessons))


REFUSED = [judged(1, 0.1), judged(2, 0.0), judged(2, -0.1), judged(3, 0.2, admitted=True)]
WITHIN = [judged(4, 0.3), judged(6, 0.0), judged(6, 0.1)]
LIFE = [
    Decision(judged=(REFUSED[0],)),
    Decision(judged=(REFUSED[2], judged(2, 0.4, LESSON, OTHER), judged(2, 0.4, OTHER))),
    Decision(judged=(REFUSED[1], judged(2, 0.4, bound=None))),
    Decision((entered(LESSON, 3),), judged=(REFUSED[3],)),
    Decision(left_out=(WITHIN[0],), judged=(judged(4, 0.4),)),
    Decision(left_out=(WITHIN[2], judged(6, 0.4, bound=None))),
    Decision(left_out=(WITHIN[1],)),
    Decision((replace(entered(LESSON, 3), edited=7),)),
    Decision((replace(entered(LESSON, 3), retired=8),), left_out=(judged(8, -0.4),)),
    Decision(left_out=(judged(9, -0.4),)),
    Decision(judged=(judged(10, 0.0),)),
    Decision((replace(entered(LESSON, 11), retired=11),), judged=(judged(11, 0.5, admitted=True),)),
    Decision(judged=(judged(12, 0.1),)),
]
COUNTED = [
    REFUSED[:1], [REFUSED[0], REFUSED[2]], REFUSED[:1] + REFUSED[2:0:-1], [], WITHIN[:1], [WITHIN[0], WITHIN[2]],
    WITHIN, WITHIN, [], [], [judged(10, 0.0)], [], [judged(12, 0.1)],
]  # fmt: skip


@pytest.mark.parametrize("resumed", [False, True])
def test_they_begin_anew_where_a_lesson_enters_and_leaves(resumed, tmp_path):
    """Also in a process that reads them from the bank after each decision."""
    bank, state = Bank(tmp_path), BankState(BankConfig())
    for decision, counted in zip(LIFE, COUNTED, strict=True):
        state.apply(decision, [])
        bank.merge(state.change())
        state.settle()
        if resumed:
            state = BankState.stored(bank, BankConfig(), None)
        assert state.measurements.of(LESSON.id) == sorted(
            (each.verdict for each in counted), key=lambda look: (look.revision, look.difference)
        )
    assert state.library().admission.looks(LESSON.id) == [judged(12, 0.1).verdict]
    assert [look.difference for look in state.measurements.of(OTHER.id)] == [0.4]
    assert state.measurements.of("unknown") == []


def test_a_rollback_brings_back_those_of_its_revision(tmp_path):
    bank, state = Bank(tmp_path), BankState(BankConfig())
    state.apply(LIFE[0], [])
    bank.merge(state.change())
    then = bank.versions(), bank.hashes()
    state.settle()
    for decision in LIFE[1:4]:
        state.apply(decision, [])
    bank.merge(state.change())
    bank.restore(*then)
    found = BankState.stored(bank, BankConfig(), None).measurements.of(LESSON.id)
    assert found == [REFUSED[0].verdict]
