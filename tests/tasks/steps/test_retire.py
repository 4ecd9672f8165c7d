"""Retirement on real stores, with the expert for a policy."""

import math
from dataclasses import replace

import pytest
from support.player import expert_player
from support.sessions import batch, do, iterate, opened, shaped

from coevo.configs.load.load import load_recipe
from coevo.memory.admission.base import Decision
from coevo.records.entry import Entry, entry_id, rescoped
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


def test_beyond_the_capacity_drawn_entries_retire_as_a_control(tmp_path):
    control = "bank.retirement={entries: 0, capacity: 5, beyond: random}"
    config = load_recipe("homerules-experience-only", [*SETTINGS, control])

    def retired(root):
        with opened(root, config, played=expert_player()) as session:
            sizes = [iterate(session)["bank/size"] for _ in range(3)]
            assert max(sizes) == 5
            return sorted((e.id, e.retired) for e in session.stores.bank.entries() if not e.active), session

    gone, session = retired(tmp_path / "once")
    assert gone == retired(tmp_path / "again")[0]
    reasons = {ruling.reason for ruling in session.stores.bank.operations()}
    assert reasons == {"drawn beyond 5 entries"}


def test_an_entry_that_nobody_retrieves_retires_after_so_many_firings(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 0, unseen: 2}"])
    lost = rescoped(USELESS, "nowhere")
    with opened(tmp_path, config, entries=[lost, USELESS], played=expert_player()) as session:
        rows = [iterate(session) for _ in range(2)]
        assert session.bank.standings[USELESS.id].unseen == 0
        (gone,) = [entry for entry in session.stores.bank.entries() if not entry.active]
    assert (gone.id, gone.retired) == (lost.id, 2)
    assert [row["bank/retirement/disuse"] for row in rows] == [0.0, 1.0]


def test_every_retrieved_entry_is_judged_in_turn_also_after_a_resume(tmp_path):
    lasting = [replace(USELESS, id=f"{n:012d}") for n in range(3)]
    config = load_recipe(
        "homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 1, replays: 1, delta: -1}"]
    )
    for _ in range(3):
        with opened(tmp_path, config, entries=lasting, played=expert_player()) as session:
            iterate(session)
    assert sorted(session.bank.standings[entry.id].waited for entry in lasting) == [0, 1, 2]
