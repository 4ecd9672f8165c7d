"""Gates on candidates and imported banks."""

import pyarrow.parquet as pq
import pytest
from support.batches import entry

from coevo.memory.writers.writer import Edit
from coevo.records.arrow import table_to_entries
from coevo.records.entry import MAX_TEXT_CHARS
from coevo.tasks.gates.entries import check_bank, check_candidates, check_edits
from coevo.tasks.gates.frame_gate import GateError

BROKEN = {
    "no strategy": (entry("  "), "column='strategy'"),
    "strategy too long": (entry("x" * (MAX_TEXT_CHARS + 1)), "column='strategy'"),
    "no keywords": (entry("other", keywords=""), "column='keywords'"),
    "written from a panel": (entry("other", split="seen-houses"), "column='split'"),
    "an id twice": (entry(), "be_unique(column='id')"),
}


@pytest.mark.parametrize(
    ("gate", "name"), [*((check_candidates, name) for name in BROKEN), (check_bank, "no strategy")]
)
def test_a_broken_entry_is_quarantined_and_named(gate, name, tmp_path):
    broken, expectation = BROKEN[name]
    with pytest.raises(GateError) as caught:
        gate([entry(), broken], tmp_path)
    assert expectation in str(caught.value)
    assert len(table_to_entries(pq.read_table(next(tmp_path.glob("*-1")) / "batch.parquet"))) == 2


def test_candidates_name_their_sources_and_a_bank_need_not(tmp_path):
    check_bank([entry(sources=())], tmp_path)
    with pytest.raises(GateError, match=r"gate candidates: .*column='sources'.*1 of 1 candidates"):
        check_candidates([entry(sources=())], tmp_path)


def test_an_entry_is_not_edited_before_it_is_created(tmp_path):
    with pytest.raises(GateError, match=r"gate bank: .*column_A='edited'.*1 of 1 entries"):
        check_bank([entry(created=3, edited=2)], tmp_path)


def test_sound_entries_and_none_at_all_pass(tmp_path):
    for entries in ([entry(), entry("other")], []):
        check_candidates(entries, tmp_path / "quarantine")
        check_bank(entries, tmp_path / "quarantine")
    assert list(tmp_path.iterdir()) == []


def test_operations_are_held_back_for_their_pool_and_their_episodes_not_for_what_they_say(tmp_path):
    sound = Edit("lotus", "nonsense", ("1/rollout-0/t/0",))
    check_edits([sound, Edit("", 'UPVOTE("x")', ())], tmp_path)
    assert list(tmp_path.iterdir()) == []
    for broken, says in (
        (Edit("lotus \u202e", "", ()), "column='flaw'"),
        (Edit("x" * (MAX_TEXT_CHARS + 1), "", ()), "column='scope'"),
        (Edit("lotus", "", ("1/rollout-0/t/0", "1/evaluate-seen-houses/t/0")), "column='untrained'"),
    ):
        with pytest.raises(GateError, match=r"gate edits: ") as caught:
            check_edits([sound, broken], tmp_path)
        assert says in str(caught.value)
    assert pq.read_table(tmp_path / "edits-1" / "batch.parquet").num_rows == 2
