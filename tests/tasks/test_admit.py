"""What a firing reports, by hand."""

from support.batches import entry

from memory.writers.base import Proposal
from tasks.admit import counts


def test_entries_that_come_and_go_are_counted():
    a, b, c = entry("a"), entry("b"), entry("c")
    found = counts({a.id}, {b.id, c.id}, Proposal((b, entry("d"), entry("e"))))
    assert found == {"bank/admitted": 2.0, "bank/retired": 1.0, "bank/rejected": 2.0, "bank/size": 2.0}
