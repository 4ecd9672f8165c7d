"""From an entry to who taught it, what replay said, and how it has served."""

import pytest
from attempts import SAFE, attempt
from support.evidence import evidence

from coevo.configs.bank.writer import QuoteContrastConfig
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange, Judged, Ruling
from coevo.memory.bank.provenance import Retrieval, why
from coevo.memory.stats import tally
from coevo.memory.writers.quote.contrast import writer
from coevo.records.arrow import episodes_to_table
from coevo.records.entry import Verdict
from coevo.records.task import BY_SCOPE
from coevo.utilities.errors import CoevoError


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
