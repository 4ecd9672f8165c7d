"""Tokens of stored answers are checked before a run trains on them."""

import pytest

from coevo.configs.errors import CoevoError
from coevo.records.writing import Credit, Drawn, Question, Reply, Rewarded
from coevo.tasks.run.author import check_tokens
from coevo.tasks.writing.artifact import Kept
from coevo.tasks.writing.journal import Answered, Journal


def answered(drawn):
    return Answered.of(1, Question("reflection", "t", ("e",), "s", "u"), "d", Reply("a", True, drawn=drawn))


@pytest.mark.parametrize("place", ["kept", "journal", "rewarded"])
@pytest.mark.parametrize(("largest", "size"), [(9, 10), (10, 10)])
def test_a_token_beyond_the_vocabulary_is_one_line(tmp_path, place, largest, size):
    drawn, journal = Drawn((1,), (largest, 2)), Journal(tmp_path / "journal", 1)
    kept = Kept(
        answers=(answered(drawn),) if place == "kept" else (answered(None),),
        rewarded=(Rewarded(drawn, (Credit(0, 1, 1.0),)),) if place == "rewarded" else (),
    )
    if place == "journal":
        journal.append(answered(drawn))
        journal = Journal(tmp_path / "journal", 1)
    if largest < size:
        check_tokens(kept, journal, size)
        return
    with pytest.raises(CoevoError, match=r"has token 10, and the policy knows 10: roll back"):
        check_tokens(kept, journal, size)
