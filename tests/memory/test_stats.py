"""Hot counters."""

from dataclasses import replace

import pytest
from attempts import attempt

from coevo.configs.bank.bank_config import UtilityUpdateConfig
from coevo.memory.stats import FROM, RetrievalCounts, Stats, initial_stats, retrieval_counts, tally


def test_an_episode_counts_once_for_every_entry_it_was_shown():
    won = attempt("u", [("o", "go a", "f", ("x", "y")), ("o", "go b", "f", ("x",))], success=True)
    lost = attempt("u", [("o", "go a", "f", ("x",))], success=False)
    assert tally({}, [won, lost]) == (Stats("x", 2, 1), Stats("y", 1, 1))


def test_counters_go_on_from_what_they_were_and_others_are_left_out():
    old = {"x": Stats("x", 5, 2, utility=0.7, visits=9), "z": Stats("z", 3, 3)}
    episode = attempt("u", [("o", "go a", "f", ("x",))], success=False)
    assert tally(old, [episode]) == (Stats("x", 6, 2, utility=0.7, visits=9),)


def test_utility_is_a_moving_average_in_the_order_of_the_episodes():
    lost = attempt("u", [("o", "go a", "f", ("x",))], success=False)
    won = replace(lost, turns=(replace(lost.turns[0], reward=1.0),), success=True)
    (stats,) = tally({}, [won, lost], UtilityUpdateConfig(rate=0.05))
    # 0.5 -> 0.95 * 0.5 + 0.05 * 1 = 0.525 -> 0.95 * 0.525 + 0 = 0.49875.
    assert (stats.utility, stats.visits) == (pytest.approx(0.49875), 3)
    (stats,) = tally({"x": Stats("x", utility=0.0)}, [won, lost], UtilityUpdateConfig(rate=0.3, score="signed"))
    # 0 -> 0.3 -> 0.7 * 0.3 - 0.3 = -0.09.
    assert stats.utility == pytest.approx(-0.09)


def test_entries_are_born_with_what_is_known_of_them():
    held = {"a": Stats("a", 4, 2, utility=0.9)}
    assert initial_stats(["a", "b"], {}, held, None) == []
    assert initial_stats(["a", "b"], {}, held, UtilityUpdateConfig(initial=0.2)) == [Stats("b", utility=0.2)]
    given = {"a": 0.4, "b": 1.0}
    assert initial_stats(["a", "b"], given, held, None) == [Stats("a", 4, 2, utility=0.4), Stats("b", utility=1.0)]


def test_retrievals_are_distributed_over_the_entries_asked_for():
    held = {name: Stats(name, count) for name, count in (("a", 1), ("b", 3), ("c", 9), ("gone", 7))}
    # 0, 0, 1, 3, 9: median 1; bins from 0, 1, 2, 4, 8.
    assert retrieval_counts(["a", "b", "c", "new", "newer"], held) == RetrievalCounts(
        0, 1.0, 9, (2, 1, 1, 0, 1, *(len(FROM) - 5) * (0,))
    )
    counts = retrieval_counts(["a", "b", "c", "new"], held)
    assert (counts.median, counts.never, counts.entries) == (2.0, 1, 4)
    assert retrieval_counts([], held) is None
    assert FROM == (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@pytest.mark.parametrize(
    ("retrievals", "bin_"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11), (5000, 11)]
)
def test_a_bin_ends_where_the_next_one_begins(retrievals, bin_):
    assert retrieval_counts(["a"], {"a": Stats("a", retrievals)}).histogram.index(1) == bin_
