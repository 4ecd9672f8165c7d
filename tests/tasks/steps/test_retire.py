"""Retirement on real stores, with the expert for a policy."""

import math
from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest
from support.sessions import batch, do, iterate, opened, shaped
from support.worker import expert_worker

from coevo.configs.bank.bank_config import RetirementConfig
from coevo.configs.load.load import load_recipe
from coevo.memory.admission.admission import Decision, Trial
from coevo.memory.admission.evidence import upper_bound
from coevo.memory.admission.replay import PairedRewards, measured
from coevo.memory.bank.change import Judged
from coevo.memory.retirement_counters import RetirementCounter
from coevo.records.entry import Entry, Verdict, entry_id, rescoped
from coevo.tasks.iteration.paired_replay import replay
from coevo.tasks.steps.retire import MARGIN, reason, retire, ruled

SETTINGS = [
    "warmstart=null", "rollout.tasks=8", "rollout.group_size=8", "evaluation.tasks=4", "evaluation.every=1000",
    "bank.admission={type: append}",
]  # fmt: skip


USELESS = Entry(entry_id("", "all is well"), "all is well", "", "", "task", "", "train", (), 0, 0)


def test_an_entry_without_effect_retires_and_keeps_its_history(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 64, replays: 16}"])
    with opened(tmp_path, config, entries=[USELESS], played=expert_worker()) as session:
        shaped(session, batch(session))
        decision = do(session, retire, Decision())
        assert [(e.id, e.retired) for e in decision.entries] == [(USELESS.id, 1)]
        assert [(r.outcome, r.entries) for r in decision.operations] == [("removed", (USELESS.id,))]
        assert "+0.000 with it over 64 pairs, not more than 0.05, and at most +0.125" in decision.operations[0].reason
        assert decision.metrics["bank/retirement/replay"] == 1.0


def test_a_bank_keeps_to_its_capacity(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 0, capacity: 5}"])
    with opened(tmp_path, config, played=expert_worker()) as session:
        rows = [iterate(session) for _ in range(3)]
        stored = session.stores.bank.entries()
    assert all(row["bank/size"] <= 5 for row in rows)
    assert sum(row["bank/retirement/capacity"] for row in rows) > 0
    assert len(stored) > 5


def test_of_two_entries_that_say_the_same_one_stays(tmp_path):
    """Each can be missed alone; both cannot."""
    wide = [*SETTINGS, "rollout.tasks=32", "rollout.group_size=2", "bank.retirement={entries: 64, replays: 2}"]
    config = load_recipe("homerules-experience-only", wide)
    with opened(tmp_path / "taught", config, played=expert_worker()) as session:
        for _ in range(2):
            iterate(session)
        useful = [each.candidates[0] for each in session.stores.bank.left_out() if each.verdict.difference > 0]
    useful = [replace(one, created=0, edited=0) for one in useful]
    pairs = [tuple(replace(one, id=f"{n:06d}{twin:06d}") for twin in range(2)) for n, one in enumerate(useful)]
    with opened(tmp_path / "twins", config, entries=[one for pair in pairs for one in pair],
                played=expert_worker()) as session:  # fmt: skip
        shaped(session, batch(session))
        measured_before(session, session.bank.entries)
        gone = {entry.id for entry in do(session, retire, Decision()).entries}
        outcomes = Counter(
            (needed(session, pair), sum(one.id in gone for one in pair)) for pair in pairs if retrieved(session, pair)
        )
    assert outcomes[True, 1] > 0
    assert outcomes[True, 2] == 0
    assert outcomes[False, 2] > 0


def measured_before(session, entries):
    """Measurements of an earlier revision, by which none of these entries gains."""
    looks = [Verdict(1, (entry.id,), True, 0.5, 0.5, 0.0, 0.0, 128, 0.0, 0.1) for entry in entries]
    left_out = tuple(Judged(look, (entry,)) for look, entry in zip(looks, entries, strict=True))
    session.bank.measurements.count(Decision(left_out=left_out))


def needed(session, pair):
    """Return True if replays earn less without both entries."""
    with_them, without = replay(session, Counter(), [Trial(read=pair), Trial(read=pair, removed=pair)], 2)
    return fmean(with_them) > fmean(without)


def retrieved(session, pair):
    shown = {entry for episode in session.recent for turn in episode.turns for entry in turn.retrieved}
    return all(one.id in shown for one in pair)


@pytest.mark.parametrize(
    ("with_it", "without", "delta", "says"),
    [
        ([1, 0, 1, 1] * 64, [0, 0, 1, 1] * 64, 0.0, ""),
        ([1, 0, 1, 1] * 64, [0, 0, 1, 1] * 64, 0.25, "+0.250 with it over 256 pairs"),
        ([0, 0], [1, 0], 0.0, ""),
        ([0, 0] * 16, [1, 0] * 16, 0.0, "-0.500 with it over 32 pairs"),
        ([0] * 32, [1, 0] * 16, None, ""),
        ([1, math.nan] * 16, [0, 1] * 16, 0.0, ""),
        ([math.nan], [0], 1.0, ""),
        ([0, math.nan, math.nan] * 16, [1, 0, 0] * 16, 0.0, ""),
        ([0, math.nan] * 16, [1, 0] * 16, 0.0, "-1.000 with it over 16 pairs"),
    ],
)
def test_an_entry_stays_if_its_removal_costs_more_than_delta(with_it, without, delta, says):
    config = RetirementConfig(delta=delta)
    measurement = ruled(measured([USELESS], PairedRewards(with_it, without), 0.0, 3), len(with_it), config)
    found = reason(measurement)
    assert says in found
    assert bool(found) == bool(says) == (not measurement.admitted)
    assert measurement.delta == (delta or 0.0)


def look(gains, revision):
    return measured([USELESS], PairedRewards(gains, [0.0] * len(gains)), 0.0, revision)


def test_measurements_of_a_life_are_judged_together():
    """Gains of -1, 0 and 1 with a mean of 0: each look by itself says too little, and five say enough."""
    config, gains, looks = RetirementConfig(), [1.0] * 3 + [-1.0] * 3 + [0.0] * 26, []
    while not looks or looks[-1].admitted:
        looks.append(ruled(look(gains, len(looks)), 32, config, looks))
    assert 2 < len(looks) < 8
    assert looks[-1].bound < config.delta + MARGIN <= looks[-2].bound
    assert [each.bound for each in looks] == [upper_bound(looks[: n + 1], 0.95) for n in range(len(looks))]


def test_an_entry_that_gains_now_stays_whatever_was_measured_before():
    config, useless = RetirementConfig(), [look([-1.0, 0.0] * 32, n) for n in range(10)]
    now = ruled(look([1.0, 0.0, 0.0, 0.0], 10), 4, config, useless)
    assert now.bound < config.delta
    assert now.admitted


def test_a_first_bad_draw_retires_no_entry():
    """Of 32 pairs one gains and two lose: by itself that was reason enough."""
    found = ruled(look([1.0] + [-1.0] * 2 + [0.0] * 29, 1), 32, RetirementConfig())
    assert found.difference < 0
    assert found.admitted
    assert reason(found) == ""


def test_each_measurement_is_kept_whether_the_entry_stays_or_retires(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 64, replays: 2}"])
    with opened(tmp_path, config, entries=[USELESS], played=expert_worker()) as session:
        measured_before(session, [USELESS])
        for _ in range(3):
            iterate(session)
        found, judged = session.stores.bank.left_out(), session.stores.bank.judged()
        gone = {ruling.entries[0]: ruling for ruling in session.stores.bank.operations()}
        held = {entry.id for entry in session.stores.bank.active()}
    assert judged == []
    assert {each.verdict.admitted for each in found} == {True, False}
    for each in found:
        (entry,), verdict = each.candidates, each.verdict
        assert verdict.candidates == (entry.id,)
        assert verdict.difference == pytest.approx(verdict.reward_with - verdict.reward_without)
        if verdict.admitted:
            assert verdict.difference > verdict.delta or verdict.bound >= verdict.delta + MARGIN
        else:
            assert entry.id not in held
            assert f"{verdict.difference:+.3f} with it over {verdict.pairs} pairs" in gone[entry.id].reason


def test_without_delta_entries_are_measured_and_none_retires(tmp_path):
    settings = "bank.retirement={entries: 64, replays: 2, delta: null}"
    with opened(tmp_path, load_recipe("homerules-experience-only", [*SETTINGS, settings]), [USELESS],
                played=expert_worker()) as session:  # fmt: skip
        metrics = iterate(session)
        (found,) = session.stores.bank.left_out()
        assert session.stores.bank.operations() == []
        assert USELESS.id in {entry.id for entry in session.stores.bank.active()}
    assert (found.verdict.difference, found.verdict.admitted, found.verdict.pairs) == (0.0, True, 8)
    assert (metrics["bank/retirement/replay"], metrics["bank/leave_one_out/pairs"]) == (0.0, 8.0)
    assert metrics["cost/retiring/episodes"] == 2 * 8


def test_only_the_entry_is_left_out(tmp_path):
    """A true lesson beside a useless one: its credit is that of the replays, with common draws on both sides."""
    settings = "bank.retirement={entries: 64, replays: 2, delta: null}"
    config = load_recipe("homerules-experience-only", [*SETTINGS, settings])
    with opened(tmp_path, config, entries=[USELESS], played=expert_worker()) as session:
        for _ in range(2):
            iterate(session)
        shaped(session, batch(session))
        decision = do(session, retire, Decision())
        for each in decision.left_out:
            with_it, without = replay(
                session, Counter(), [Trial(read=each.candidates), Trial((), (), each.candidates, each.candidates)], 2
            )
            assert each.verdict.difference == pytest.approx(fmean(with_it) - fmean(without))
        credit = [(each.candidates[0], each.verdict.difference) for each in session.stores.bank.left_out()]
    assert {worth for entry, worth in credit if entry == USELESS} == {0.0}
    assert max(worth for _, worth in credit) > 0


def test_beyond_the_capacity_drawn_entries_retire_as_a_control(tmp_path):
    control = "bank.retirement={entries: 0, capacity: 5, beyond: random}"
    config = load_recipe("homerules-experience-only", [*SETTINGS, control])

    def retired(root):
        with opened(root, config, played=expert_worker()) as session:
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
    with opened(tmp_path, config, entries=[lost, USELESS], played=expert_worker()) as session:
        rows = [iterate(session) for _ in range(2)]
        assert session.bank.retirement_counters[USELESS.id].unseen == 0
        (gone,) = [entry for entry in session.stores.bank.entries() if not entry.active]
    assert (gone.id, gone.retired) == (lost.id, 2)
    assert [row["bank/retirement/disuse"] for row in rows] == [0.0, 1.0]


def test_every_retrieved_entry_is_judged_in_turn_also_after_a_resume(tmp_path):
    lasting = [replace(USELESS, id=f"{n:012d}") for n in range(3)]
    config = load_recipe(
        "homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 1, replays: 1, delta: -1}"]
    )
    for _ in range(3):
        with opened(tmp_path, config, entries=lasting, played=expert_worker()) as session:
            iterate(session)
    assert sorted(session.bank.retirement_counters[entry.id].waited for entry in lasting) == [0, 1, 2]


def test_an_entry_in_doubt_is_measured_again_before_its_turn_but_takes_half_of_the_places_at_most(tmp_path):
    lasting = [replace(USELESS, id=f"{n:012d}") for n in range(4)]
    config = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retirement={entries: 2, replays: 1}"])
    with opened(tmp_path, config, entries=lasting, played=expert_worker()) as session:
        measured_before(session, lasting[:2])
        session.bank.retirement_counters = {
            each.id: RetirementCounter(each.id, waited=5 * (n > 1)) for n, each in enumerate(lasting)
        }
        shaped(session, batch(session))
        chosen = [each.verdict.candidates[0] for each in do(session, retire, Decision()).left_out]
    assert sorted(name in {each.id for each in lasting[:2]} for name in chosen) == [False, True]
