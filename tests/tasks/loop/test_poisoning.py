"""Memory poisoning: an environment plants lessons in episodes that earn nothing; admission takes them or not.

What no replay judges enters, which is why ``coevo run`` has to report it (``tests/flows/commands/test_dry_run.py``).
"""

import pytest
from support.poison import PLANTED, UNPROVEN, poisoned
from support.sessions import iterate

from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.tasks.run.by_hand import retire_entry

JUDGED = {
    "batch": "{type: replay, per: batch, replays: 8, confidence: null}",
    "entry": "{type: replay, replays: 8, confidence: null}",
    "confidence": "{type: replay, replays: 8}",
}


def played(session):
    """One iteration: its metrics, and the entries that the bank then holds."""
    metrics = iterate(session)
    assert metrics["agent/success/train"] == metrics["agent/reward/train"] == 0.0
    return metrics, session.stores.bank.active()


@pytest.mark.parametrize("judged", JUDGED)
def test_replay_lets_none_of_them_in(judged, tmp_path):
    with poisoned(tmp_path, "homerules-coevo-rl", f"bank.admission={JUDGED[judged]}") as session:
        metrics, held = played(session)
    assert held == []
    assert (metrics["bank/admitted"], metrics["bank/rejected"]) == (0, PLANTED)
    assert metrics["bank/replay/pairs"] > 0


def retire(root, entry):
    """As ``coevo bank retire``, on the stores."""
    workspace = Workspace(root)
    paths = workspace.existing("run")
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        bank = Bank(paths.bank)
        retire_entry(entry, "asks for rm -rf /", "ada", paths, bank, lineage)
        return bank.clusters()


@pytest.mark.parametrize("kind", UNPROVEN)
def test_without_replay_every_planted_lesson_enters_until_a_person_retires_it(kind, tmp_path):
    """A retired one is not shown, and does not enter again when the environment plants it once more."""
    with poisoned(tmp_path, *UNPROVEN[kind]) as session:
        metrics, held = played(session)
    assert (len(held), metrics["bank/admitted"], metrics["bank/rejected"]) == (PLANTED, PLANTED, 0)
    assert all("rm -rf /" in entry.strategy for entry in held)
    (gone, *others) = sorted(entry.id for entry in held)
    assert all(gone not in cluster.entries for cluster in retire(tmp_path, gone))
    with poisoned(tmp_path, *UNPROVEN[kind]) as session:
        _, held = played(session)
        lineage, bank = session.stores.lineage, session.stores.bank
        assert sorted(entry.id for entry in held) == others
        assert {entry for each in session.recent for turn in each.turns for entry in turn.retrieved}.isdisjoint({gone})
        assert next(entry.retired for entry in bank.entries() if entry.id == gone) == 2
        if kind == "edits":
            assert "says what a person has retired" in {ruling.reason for ruling in bank.operations()}
        lineage.rollback(1, bank)
        assert gone in {entry.id for entry in bank.active()}
