"""SimUtil-UCB: the worked values, and a ranking written out."""

import math

import numpy as np
import pytest
from attempts import attempt
from support.entries import Asked, Fixed, bank, questions, ranked

from coevo.configs.bank.bank_config import UtilityUpdateConfig
from coevo.configs.bank.retrieval_config import SimUtilUcbConfig, TfidfConfig, TfidfSimilarity
from coevo.memory.library import Library
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.scorer import NEVER
from coevo.memory.retrieval.simutil_ucb import SimUtilUcb, upper_bounds
from coevo.memory.stats import Stats, tally


def test_worked_values():
    entries, _ = bank(3)
    library = Library(entries)
    counters = [(0.5, 6), (0.9, 3), (0.5, 1)]
    stats = {e.id: Stats(e.id, utility=u, visits=n) for e, (u, n) in zip(library.entries, counters, strict=True)}
    score = SimUtilUcb(Fixed(0.9, 0.6, 0.45), 0.4, 0.7, 1.0).fit(Library(entries, stats))
    assert score(Asked(3)) == pytest.approx([0.965846, 0.952826, 0.920228], abs=1e-6)


def test_every_visit_takes_some_of_the_bonus():
    """After two failed episodes with the first entry the second, as likely and never tried, is shown before it."""
    entries, _ = bank(2)
    library = Library(entries)
    tried = library.entries[0]
    lost = attempt("u", [("o", "go a", "f", (tried.id,))], success=False)
    stats = {each.id: each for each in tally({}, [lost, lost], UtilityUpdateConfig(rate=0.05))}
    score = SimUtilUcb(Fixed(0.6, 0.6), 0.4, 0.7, 1.0).fit(Library(entries, stats))
    # u = .5 * .95 * .95 = .45125, n = 3; u = .5, n = 1; N = 4, ln 4 = 1.386294.
    # .42 + .3 (.45125 + sqrt(.462098)) and .42 + .3 (.5 + sqrt(1.386294)).
    assert (stats[tried.id].visits, stats[tried.id].utility) == (3, pytest.approx(0.45125))
    assert score(Asked(2)) == pytest.approx([0.759309, 0.923223], abs=1e-6)


def test_entries_below_the_threshold_are_dropped_and_those_at_it_kept():
    entries, stats = bank(3)
    score = SimUtilUcb(Fixed(0.4, 0.39, -1.0), 0.4, 0.7, 1.0).fit(Library(entries, stats))
    assert (score(Asked(3)) == NEVER).tolist() == [False, True, True]


def test_by_words_entries_without_one_of_the_question_have_similarity_0():
    entries, stats = bank(3)
    words = TfidfSimilarity(type="tfidf")
    for threshold, count in ((0.0, 3), (0.001, 0)):
        config = SimUtilUcbConfig(type="simutil-ucb", threshold=threshold, similarity=words)
        hits = Index(entries, config, stats).search("plate", "")
        assert len(hits) == count
    (first,) = Index(entries[:1], config.model_copy(update={"threshold": 0.0}), stats).search("plate", "")
    one = stats[first.entry.id]
    assert first.score == pytest.approx(0.3 * (one.utility + math.sqrt(math.log(one.visits) / one.visits)))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_ranking_equals_the_reference(alpha):
    entries, stats = bank(40)
    config = SimUtilUcbConfig(
        type="simutil-ucb", k=5, alpha=alpha, kappa=0.5, threshold=0.05, similarity=TfidfSimilarity(type="tfidf")
    )
    index = Index(entries, config, stats)
    plain = Index(entries, TfidfConfig(k=40))
    total = sum(each.visits for each in stats.values())
    for query in questions(10):
        similar = {hit.entry: hit.score / 4.5 for hit in plain.search(query, "")}  # the weights add up to 4.5
        expected = {
            e: alpha * s + (1 - alpha) * (stats[e.id].utility + 0.5 * math.sqrt(math.log(total) / stats[e.id].visits))
            for e, s in similar.items()
            if s >= 0.05
        }
        assert [hit.entry.id for hit in index.search(query, "")] == ranked(expected, 5)


def test_a_single_visit_has_no_bonus():
    assert upper_bounds(np.array([0.5]), np.array([1.0]), 1.0).tolist() == [0.5]
