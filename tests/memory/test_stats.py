"""Hot counters."""

from attempts import attempt

from memory.stats import Stats, tally


def test_an_episode_counts_once_for_every_entry_it_was_shown():
    won = attempt("u", [("o", "go a", "f", ("x", "y")), ("o", "go b", "f", ("x",))], success=True)
    lost = attempt("u", [("o", "go a", "f", ("x",))], success=False)
    assert tally({}, [won, lost]) == (Stats("x", 2, 1), Stats("y", 1, 1))


def test_counters_go_on_from_what_they_were_and_others_are_left_out():
    old = {"x": Stats("x", 5, 2, utility=0.7, visits=9), "z": Stats("z", 3, 3)}
    episode = attempt("u", [("o", "go a", "f", ("x",))], success=False)
    assert tally(old, [episode]) == (Stats("x", 6, 2, utility=0.7, visits=9),)
