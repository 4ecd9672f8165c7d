"""Support of entries in episodes: who confirms an entry, who was misled by it, and who contradicts it."""

from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt
from support.batches import entry

from coevo.memory.writers.quote.editor import Support, contradiction, duplicates, follows

MICROWAVE, STOVE_ONLY = "lotus heat with microwave", "lotus heat with stove"
"""Lesson of ``SAFE``, and a statement that differs from it in one word."""


def shown(turns, name):
    """The turns with an entry in every prompt."""
    return [(*turn, (name,)) for turn in turns]


def said(text, **changes):
    return entry(text, scope="lotus", **changes)


def test_episodes_with_its_wording_confirm_an_entry_earlier_ones_first():
    played, earlier = attempt("now", SAFE, success=True), attempt("then", SAFE, success=True)
    assert Support([played], [earlier]).confirming(said(MICROWAVE)) == [earlier, played]
    assert Support([played]).confirming(said(STOVE_ONLY)) == []


@pytest.mark.parametrize(
    ("turns", "success", "earlier", "helped"),
    [
        (shown(SAFE, said(MICROWAVE).id), True, False, True),
        (SAFE, True, False, False),  # not in a prompt
        (shown(SAFE, said(MICROWAVE).id), False, False, False),
        (shown(STOVE, said(MICROWAVE).id), True, False, False),  # does not confirm it
        (shown(SAFE, said(MICROWAVE).id), True, True, False),  # has had its vote
    ],
)
def test_an_entry_helped_successes_of_this_iteration_that_were_shown_it_and_confirm_it(turns, success, earlier, helped):
    one = attempt("0", turns, success=success)
    support = Support([], [one]) if earlier else Support([one])
    assert support.helped(said(MICROWAVE)) == ([one] if helped else [])


def test_failures_that_followed_an_entry_were_misled_unless_an_episode_confirms_it():
    misleading = said(STOVE_ONLY)
    failed = attempt("0", shown(STOVE, misleading.id), success=False)
    unseen = attempt("1", STOVE, success=False)
    succeeded = attempt("2", shown(STOVE, misleading.id), success=True)
    assert Support([failed, unseen, succeeded]).misled(misleading) == [failed]
    assert Support([unseen], [failed]).misled(misleading) == []
    confirming = attempt("3", [("at stove", "use stove", "heat with stove")], success=False)
    assert Support([failed, confirming]).misled(misleading) == []


def test_lessons_of_successes_correct_an_entry_that_nobody_confirms():
    right, wrong = attempt("0", SAFE, success=True), said(STOVE_ONLY)
    assert list(Support([right]).corrections(wrong)) == [(MICROWAVE, [right])]
    assert list(Support([], [right]).corrections(wrong)) == [(MICROWAVE, [right])]
    assert list(Support([attempt("0", SAFE, success=False)]).corrections(wrong)) == []
    assert list(Support([right]).corrections(said("lotus heat with a stove"))) == []
    confirming = attempt("1", [("at stove", "use stove", "heat with stove")], success=False)
    assert list(Support([right, confirming]).corrections(wrong)) == []


def test_statements_about_two_objects_of_an_instruction_do_not_correct_each_other():
    both = attempt("0", SAFE, success=True, instruction="house lotus . task heat mug with microwave or stove")
    assert list(Support([both]).corrections(said(STOVE_ONLY))) == []


@pytest.mark.parametrize(
    ("strategy", "action", "retrieved", "valid", "expected"),
    [
        (STOVE_ONLY, "use stove", True, True, True),
        (STOVE_ONLY, "use stove", False, True, False),
        (STOVE_ONLY, "use stove", True, False, False),
        ("lotus heat not stove", "use stove", True, True, False),
        ("lotus chill with stove", "use stove", True, True, False),  # nothing that was asked for
        (STOVE_ONLY, "heat mug", True, True, False),  # only words of the instruction
        (STOVE_ONLY, "use microwave", True, True, False),
        ("lotus heat with lotus", "go lotus", True, True, False),  # the name of the place tells nothing
    ],
)
def test_a_turn_follows_an_entry_by_its_words(strategy, action, retrieved, valid, expected):
    one = said(strategy)
    episode = attempt("0", [("at hall", action, "nothing", (one.id,) if retrieved else ())], success=False)
    assert follows(replace(episode.turns[0], valid=valid), one, episode) is expected


def test_the_name_of_the_place_tells_nothing_that_the_entry_does_not_say():
    one = said("heat with stove")
    episode = attempt("0", [("at hall", "go maple", "nothing", (one.id,))], success=False, scope="maple")
    assert not follows(episode.turns[0], one, episode)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("mug in safe", "mug in sink", {"safe", "sink"}),
        ("Mug in SAFE", "mug in sink", {"safe", "sink"}),
        ("heat with stove", "heat not stove", {"with", "not"}),
        ("mug not safe", "mug not sink", set()),  # two failures
        ("mug not safe", "mug in sink", set()),  # two words
        ("mug in safe", "mug in safe", set()),
        ("mug in safe", "mug in the safe", set()),
        ("mug in safe", "cup on safe", set()),
    ],
)
def test_statements_contradict_each_other_in_one_word(one, other, apart):
    assert contradiction(one, other) == contradiction(other, one) == apart


def test_entries_with_the_same_content_words_are_duplicates():
    twice = [entry("mug in safe"), entry("the mug is in the safe")]
    assert duplicates([*twice, entry("safe in mug"), entry("cup in safe")]) == [twice]
    assert duplicates([twice[0]]) == []
