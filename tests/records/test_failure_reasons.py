"""Reasons of failed episodes."""

from dataclasses import replace

import pytest
from support.batches import episode, turn

from coevo.records.answer_faults import Fault
from coevo.records.failure_reasons import FailureReason, failure_reason

GOOD, INVALID = turn(), turn(valid=False)
REFUSED = turn(valid=False, fault=str(Fault.REFUSED))
NO_ACTION = turn(action="", valid=False, fault=str(Fault.NO_ACTION))
CUT_OFF = turn(action="", valid=False, fault=str(Fault.CUT_OFF))
CASES = {
    "the environment failed": ((GOOD,), {"lost": "crash: gone"}, "environment error"),
    "it failed at once": ((), {"lost": "timeout: start"}, "environment error"),
    "a prompt was too long": ((GOOD, INVALID), {"cut": "its prompt is too long"}, "out of tokens"),
    "the environment ended it": ((INVALID, GOOD), {}, "wrong end"),
    "it ended after an action it refused": ((GOOD, REFUSED), {}, "invalid action"),
    "it ended after no action": ((GOOD, NO_ACTION), {}, "no usable action"),
    "it ended after half an answer": ((GOOD, CUT_OFF), {}, "out of tokens"),
    "the limit came first": ((GOOD, GOOD, NO_ACTION), {"truncated": True}, "out of turns"),
    "half had no action": ((GOOD, NO_ACTION), {"truncated": True}, "no usable action"),
    "most were invalid": ((INVALID, REFUSED, NO_ACTION, GOOD), {"truncated": True}, "invalid action"),
    "most were cut off": ((CUT_OFF, CUT_OFF, INVALID), {"truncated": True}, "out of tokens"),
    "no turn at all": ((), {"truncated": True}, "out of turns"),
}


@pytest.mark.parametrize(("turns", "fields", "reason"), CASES.values(), ids=CASES)
def test_every_failed_episode_has_one_reason(turns, fields, reason):
    assert failure_reason(replace(episode(turns=turns), **fields)) == reason


def test_a_success_and_a_part_of_an_attempt_have_none():
    assert failure_reason(episode(replica=1, turns=(NO_ACTION,))) is None
    assert failure_reason(replace(episode(turns=(GOOD,)), truncated=False, following=(1, 2))) is None


def test_every_fault_of_an_answer_gives_a_reason():
    for fault in Fault:
        found = failure_reason(episode(turns=(turn(action="", valid=False, fault=str(fault)),)))
        assert found in FailureReason and found != FailureReason.WRONG_END
