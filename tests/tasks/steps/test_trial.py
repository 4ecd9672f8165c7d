"""Trials of candidates on real stores, with the expert for a policy."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from support.batches import entry, task, turn
from support.kept import whole
from support.sessions import batch, do, iterate, opened, played, shaped
from support.worker import expert_worker

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.configs.load.load import load_recipe
from coevo.memory.admission.admission import Decision
from coevo.memory.admission.replay import PairedRewards, judge
from coevo.memory.retrieval.index import Index
from coevo.memory.trials import OnTrial
from coevo.memory.writers.writer import Proposal
from coevo.records.draws import key
from coevo.records.entry import entry_id
from coevo.records.episode import Episode
from coevo.tasks.play.retrieve import Retrieved
from coevo.tasks.play.treatment_groups import TreatmentGroups, inserted
from coevo.tasks.steps.bank_steps import _lost, admit, weigh
from coevo.tasks.steps.policy_steps import group_name

SETTINGS = [
    "warmstart=null", "rollout.tasks=8", "rollout.group_size=8", "evaluation.tasks=4", "evaluation.every=1000",
    "bank.admission={type: within-group, iterations: 2, confidence: null}",
]  # fmt: skip
CONFIG = load_recipe("homerules-experience-only", SETTINGS)


def lesson(task, text):
    made = entry(text, scope=task.scope, keywords=f"{task.scope} {task.data['object']}", condition=task.data["object"])
    return replace(made, id=entry_id(task.scope, text))


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path, CONFIG, played=expert_worker()) as session:
        yield session


def on_trial(session, true):
    """A candidate about the place of an object, true or false, whose source task is drawn from training."""
    env = session.parts.env
    task = next(t for t in env.sample(64, key(5)) if t.kind == "put")
    place = env.start(task)[0].setting.storage
    place = place if true else next(p for p in ("drawer", "cabinet", "safe") if p != place)
    return OnTrial(lesson(task, f"{task.scope} {task.data['object']} in {place}"), (task,))


def test_half_of_the_group_of_a_source_task_plays_with_the_candidate(session):
    trial = on_trial(session, true=True)
    session.bank.trials = [trial]
    episodes = batch(session)
    assert len(episodes) == 64
    assert len({e.task.id for e in episodes}) == 8
    for episode in episodes:
        shows = any(trial.entry.id in turn.retrieved for turn in episode.turns)
        assert shows == (episode.task.id == trial.tasks[0].id and episode.replica % 2 == 1)
    assert [e.strategy for e in session.bank.entries] == []


def test_rewards_of_the_halves_add_up_and_their_cost_is_a_metric(session):
    trial = on_trial(session, true=False)
    session.bank.trials = [trial]
    drawn, episodes = played(session)
    episodes = shaped(session, episodes).episodes
    do(session, weigh, drawn.tried)
    (after,) = session.bank.trials
    mine = [e for e in episodes if e.task.id == trial.tasks[0].id]
    assert after.rewards_with == tuple(e.reward for e in mine if e.replica % 2 == 1)
    assert after.rewards_without == tuple(e.reward for e in mine if e.replica % 2 == 0)
    lost = 4 * (np.mean(after.rewards_without) - np.mean(after.rewards_with)) / 64
    assert session.pending.metrics["bank/trial/success_lost"] == pytest.approx(lost)
    assert session.pending.metrics["bank/trial/groups"] == 1.0
    assert session.pending.metrics["bank/trial/seen_share"] == 1.0


def trial_of(retrieval, candidate, tasks, groups, size):
    """Trial of a candidate without any effect; an observation that asks for it comes where an episode is failing."""
    random, bank = np.random.default_rng(0), [entry("mug in safe", keywords="mug safe fine")]
    found, seen = (Retrieved(Index(held, retrieval), key(0)) for held in ([*bank, candidate], bank))
    trial = OnTrial(candidate, tuple(tasks))
    arms = TreatmentGroups({task.id: trial for task in tasks}, {candidate.id: found}, retrieval, size)

    @cache
    def turns(n, treated, fails):
        shown = arms.experience(tasks[n].id, seen) if treated else seen
        observed = ("fine", "stuck" if fails else "fine")
        ids = [[hit.id for hit in (*shown.of_task(tasks[n]), *shown.of_step(tasks[n], each))] for each in observed]
        return tuple(turn(1, 1, retrieved=tuple(names), reward=0.5 * (not fails)) for names in ids)

    for _ in range(groups // len(tasks)):
        fails = random.random((len(tasks), size)) < 0.2
        trial = trial.after(
            arms.groups(
                [
                    Episode(
                        "e", one, 1, replica, turns(n, arms.treats(one.id, replica), fails[n, replica]), True, False
                    )
                    for n, one in enumerate(tasks)
                    for replica in range(size)
                ],
                candidate.id,
            )
        )
    return trial


@pytest.mark.parametrize(("groups", "size", "share"), [(2000, 8, 1.0), (4000, 8, 0.5), (4000, 5, 1.0)])
@pytest.mark.parametrize(("per", "low", "high"), [("task", 0.5, 0.5), ("step", 0.15, 0.25), ("both", 0.55, 0.65)])
def test_a_candidate_without_effect_has_no_gap_whoever_sees_it(per, low, high, groups, size, share):
    """Every other task names the candidate. 8,000 pairs, so that the standard error of the gap is .0063."""
    candidate = entry("wait", keywords="stuck", condition="stuck")
    tasks = [replace(task(n), instruction="stuck" if n % 2 else "fine") for n in range(10)]
    retrieval = TfidfConfig(type="tfidf", k=2, per=per, share=share, step_query="observation")
    trial = trial_of(retrieval, candidate, tasks, groups, size)
    verdict = judge([candidate], PairedRewards(trial.rewards_with, trial.rewards_without), CONFIG.bank.admission, 1)
    assert (trial.groups, verdict.pairs) == (groups, 8000)
    assert abs(verdict.difference) <= 0.02
    assert low <= trial.seen_share <= high


def test_what_trying_costs_is_a_difference_among_those_that_see_the_bank():
    arms = TreatmentGroups({"t": None}, {}, CONFIG.bank.retrieval.model_copy(update={"share": 0.5}), 8)
    assert [arms.sees(replica) for replica in range(8)].count(True) == 4
    seers = [SimpleNamespace(task=SimpleNamespace(id="t"), replica=n, success=arms.sees(n)) for n in range(8)]
    assert _lost(arms, seers) == 0.0


def test_candidates_on_trial_are_not_rejected(session):
    trial = on_trial(session, true=True)
    session.bank.trials = [trial]
    made = do(session, admit, Proposal((trial.entry,)), Decision())
    assert made is None
    assert session.pending.metrics["bank/rejected"] == 0.0


def test_an_episode_is_compared_with_its_own_half(session):
    session.bank.trials = [trial := on_trial(session, true=True)]
    drawn, episodes = played(session)
    groups = {e.id: group_name(e, drawn.tried) for e in episodes}
    mine = [e for e in episodes if e.task.id == trial.tasks[0].id]
    assert len({groups[e.id] for e in mine}) == 2
    assert {groups[e.id] for e in mine if e.replica % 2} != {groups[e.id] for e in mine if not e.replica % 2}
    others = [e for e in episodes if e.task.id != trial.tasks[0].id]
    assert len({groups[e.id] for e in others}) == 7


def test_candidates_do_not_take_the_places_from_each_other(tmp_path):
    one = load_recipe("homerules-experience-only", [*SETTINGS, "bank.retrieval.k=1", "bank.admission.revisit=1.0"])
    with opened(tmp_path, one, played=expert_worker()) as session:
        first, *others = session.parts.env.sample(64, key(5))
        alike = [task for task in others if (task.kind, task.data["object"]) == (first.kind, first.data["object"])]
        other = next(task for task in alike if task.scope == first.scope)
        session.bank.trials = [OnTrial(lesson(task, f"note {task.id}"), (task,)) for task in (first, other)]
        shown = {name for episode in batch(session) for turn in episode.turns for name in turn.retrieved}
        assert shown == {trial.entry.id for trial in session.bank.trials}


def test_a_candidate_on_trial_has_no_counters(session):
    session.bank.trials = [trial := on_trial(session, true=True)]
    iterate(session)
    assert trial.entry.id not in session.bank.stats


def test_candidates_are_tried_and_judged_without_another_episode(tmp_path):
    with opened(tmp_path, CONFIG, played=expert_worker()) as session:
        rows = [iterate(session) for _ in range(3)]
        entries = list(session.bank.entries)
    assert [row["cost/episodes"] for row in rows] == [64.0] * 3
    assert rows[0]["bank/trial/begun"] == 8.0
    assert "bank/trial/ended" in rows[2]
    assert rows[2]["bank/trial/ended"] == 8.0
    assert len(entries) == sum(row.get("bank/admitted", 0.0) for row in rows) > 0


@pytest.mark.full
def test_a_run_opened_again_in_the_middle_of_trials_is_bit_equal(tmp_path):
    config = load_recipe("homerules-experience-only", [*SETTINGS, "rollout.tasks=4", "rollout.group_size=4"])
    with opened(tmp_path / "whole", config, played=expert_worker()) as session:
        for _ in range(3):
            iterate(session)
    for _ in range(3):
        with opened(tmp_path / "parts", config, played=expert_worker()) as session:
            iterate(session)
    revisions = [[whole(tmp_path / place, "run", n) for n in range(4)] for place in ("whole", "parts")]
    assert revisions[0] == revisions[1]
    assert "trials" in revisions[0][1][0]


def test_a_candidate_takes_its_rank_and_others_keep_theirs():
    a, b, c, other, new = (entry(name) for name in ("a", "b", "c", "other", "new"))
    assert inserted(new, (a, b, c), (a, new, other)) == (a, new, b)
    assert inserted(new, (), (other, new)) == (new,)
    assert inserted(new, (a, b), (a, other)) == (a, b)
    assert inserted(new, (a,), (other, new, a, b)) == (new, a)
