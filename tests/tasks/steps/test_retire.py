"""Retirement on real stores, with the expert for a policy."""

import math

import pytest
from support.player import expert_player
from support.sessions import batch, do, iterate, opened, shaped

from coevo.configs.load.load import load_recipe
from coevo.memory.admission.base import Decision
from coevo.records.entry import Entry, entry_id
from coevo.tasks.steps.retire import reason, retire

SETTINGS = [
    "warmstart=null", "rollout.tasks=8", "rollout.group_size=8", "evaluation.tasks=4", "evaluation.every=1000",
    "bank.admission={type: append}",
]  # fmt: skip


USELESS = Entry(entry_id("", "all is well"), "all is well", "", "", "task", "", "train", (), 0, 0)


def test_an_entry_without_effect_retires_and_keeps_its_history(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 64, replays: 2}"])
    with opened(tmp_path, config, entries=[USELESS], played=expert_player()) as session:
        shaped(session, batch(session))
        decision = do(session, retire, Decision())
        assert [(e.id, e.retired) for e in decision.entries] == [(USELESS.id, 1)]
        assert [(r.outcome, r.entries) for r in decision.operations] == [("removed", (USELESS.id,))]
        assert "+0.000 with it over 8 pairs" in decision.operations[0].reason
        assert decision.metrics["bank/retirement/replay"] == 1.0


def test_a_bank_keeps_to_its_capacity(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 0, capacity: 5}"])
    with opened(tmp_path, config, played=expert_player()) as session:
        rows = [iterate(session) for _ in range(3)]
        stored = session.stores.bank.entries()
    assert all(row["bank/size"] <= 5 for row in rows)
    assert sum(row["bank/retirement/capacity"] for row in rows) > 0
    assert len(stored) > 5


@pytest.mark.parametrize(
    ("with_it", "without", "delta", "says"),
    [
        ([1, 0, 1, 1], [0, 0, 1, 1], 0.0, ""),
        ([1, 0, 1, 1], [0, 0, 1, 1], 0.25, "+0.250 with it over 4 pairs"),
        ([0, 0], [1, 0], 0.0, "-0.500"),
        ([1, math.nan], [0, 1], 0.0, ""),
        ([math.nan], [0], 1.0, ""),
    ],
)
def test_an_entry_stays_if_its_removal_costs_more_than_delta(with_it, without, delta, says):
    found = reason(with_it, without, delta)
    assert says in found
    assert bool(found) == bool(says)
