"""Two-phase retrieval: z-scores, the threshold, and exploration that repeats."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.entries import bank, questions, ranked

from coevo.configs.bank.retrieval_config import TfidfConfig, TfidfSimilarity, TwoPhaseConfig
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.two_phase import z_scores
from coevo.records.draws import key


def config(**changes):
    return TwoPhaseConfig(
        **{"type": "two-phase", "k": 5, "threshold": 0.02, "epsilon": 0.0, "similarity": TfidfSimilarity(type="tfidf")}
        | changes
    )


def test_worked_z_scores():
    # Mean 2, population variance 2/3.
    assert z_scores(np.array([1.0, 2.0, 3.0]), 3.0).tolist() == pytest.approx([-1.224745, 0.0, 1.224745], abs=1e-6)
    assert z_scores(np.array([0.0] * 99 + [1.0]), 3.0)[-1] == 3.0
    assert z_scores(np.array([0.1] * 3), 3.0).tolist() == [0.0] * 3
    assert z_scores(np.array([1e7, np.nextafter(1e7, 2e7)]), 3.0).tolist() == [0.0] * 2  # equal, but for rounding
    assert z_scores(np.array([0.0, 1e-13]), 3.0).tolist() == pytest.approx([-1.0, 1.0])
    assert z_scores(np.zeros(0), 3.0).tolist() == []


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.floats(0.1, 5))
def test_z_scores_stay_within_the_clip_and_keep_the_order(values, clip):
    scores = z_scores(np.array(values), clip)
    assert np.abs(scores).max() <= clip
    assert all(scores[i] <= scores[j] for i in range(len(values)) for j in range(len(values)) if values[i] < values[j])


@pytest.mark.parametrize("balance", [0.5, 0.2])
def test_ranking_and_scores_equal_the_reference(balance):
    entries, stats = bank(40)
    index, plain = Index(entries, config(balance=balance), stats), Index(entries, TfidfConfig(k=40))
    for query in questions(10):
        similar = {hit.entry: hit.score / 4.5 for hit in plain.search(query, "")}
        chosen = {e: s for e, s in similar.items() if s > 0.02}
        sides = [list(chosen.values()), [stats[e.id].utility for e in chosen]]
        means, spreads = [statistics.mean(side) for side in sides], [statistics.pstdev(side) for side in sides]
        expected = {
            e: sum(
                weight * max(-3, min(3, (value - mean) / spread))
                for weight, value, mean, spread in zip(
                    (1 - balance, balance), (s, stats[e.id].utility), means, spreads, strict=True
                )
            )
            for e, s in chosen.items()
        }
        hits = index.search(query, "")
        assert [hit.entry.id for hit in hits] == ranked(expected, 5)
        assert [hit.score for hit in hits] == pytest.approx([expected[hit.entry] for hit in hits], abs=1e-9)


def test_candidates_are_more_similar_than_the_threshold():
    entries, stats = bank(40)
    for query in questions(3):
        shared = {hit.entry for hit in Index(entries, TfidfConfig(k=40)).search(query, "")}
        found = Index(entries, config(k=40, threshold=0.0), stats).search(query, "")
        assert {hit.entry for hit in found} == shared != set(entries)


def test_exploration_is_rare_repeats_and_stays_among_the_candidates():
    entries, stats = bank(40)
    greedy, curious = Index(entries, config(), stats), Index(entries, config(epsilon=0.3), stats)
    (query,) = questions(1)
    drawn = [curious.search(query, "", key(n)) for n in range(200)]
    assert drawn == [curious.search(query, "", key(n)) for n in range(200)]
    usual = greedy.search(query, "")
    assert 30 <= sum(hits != usual for hits in drawn) <= 90
    assert curious.tally["explored"] in range(60, 180)
    able = {hit.entry for hit in Index(entries, TfidfConfig(k=40)).search(query, "")}
    assert {hit.entry for hits in drawn for hit in hits} <= able
