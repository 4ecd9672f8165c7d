"""The built-in editor on hand-written episodes: what is added, put right, voted on and merged."""

from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt
from support.entries import entry
from support.evidence import evidence

from coevo.configs.bank.writer import QuoteEditorConfig
from coevo.memory.edit_operations import parse
from coevo.memory.library import Library
from coevo.memory.stats import Stats
from coevo.memory.writers.quote.editor import writer
from coevo.memory.writers.writer import Evidence
from coevo.records.task import BY_SCOPE, key_by

DRAWER = [
    ("at hall hold nothing . seen nothing", "go safe", "nothing"),
    ("at safe hold nothing . seen safe", "go drawer", "mug in drawer"),
    ("at drawer hold nothing . seen safe drawer", "take mug", "hold mug"),
    *[tuple(text.replace("safe", "drawer") for text in turn) for turn in SAFE[2:]],
]
"""A success that first looks in the safe, in vain."""

LOST = [*DRAWER[:1], ("at safe hold nothing . seen safe", "go chest", "nothing")]
"""A failure that looks in the safe, in vain."""


def rule(text, **changes):
    return replace(entry(text, keywords=text, scope="lotus"), **changes)


MUG, HEAT, STOVES = rule("lotus mug in safe"), rule("lotus heat with microwave"), rule("lotus heat not stove")


def shown(turns, *entries):
    """Turns with entries in their prompts."""
    return [(*turn, tuple(each.id for each in entries)) for turn in turns]


def edits(episodes, held=(), references=(), stats=None, key=BY_SCOPE, **config):
    seen = evidence(episodes, held, stats, references, revision=2, key=key)
    return writer(QuoteEditorConfig(type="quote-editor", **config), key).write(seen).edits


def said(*arguments, **named):
    return [each.line for each in edits(*arguments, **named)]


def won(*entries, name="0", turns=SAFE, **task):
    return attempt(name, shown(turns, *entries), success=True, **task)


def lost(*entries, name="1", turns=STOVE, **task):
    return attempt(name, shown(turns, *entries), success=False, **task)


def test_lessons_that_the_pool_lacks_are_added_with_the_episodes_that_taught_them():
    episodes = [won(), won(name="2")]
    first, second = edits(episodes)
    assert [first.line, second.line] == ['ADD("lotus mug in safe")', 'ADD("lotus heat with microwave")']
    assert first.sources == tuple(episode.id for episode in episodes)
    assert first.scope == "lotus"
    assert said([won(MUG)], [MUG, HEAT]) == [f'UPVOTE("{MUG.id}")']
    assert said([won()], [MUG, HEAT]) == []


def test_a_failure_is_held_against_an_earlier_success_at_the_same_task():
    assert said([lost()]) == ['ADD("lotus heat not stove")', 'ADD("lotus mug in safe")']
    # Beside the success, what matters is what it did from where they parted.
    assert said([lost()], references=[won()]) == ['ADD("lotus heat with microwave")']
    other = won(instruction="house lotus . task clean mug to counter")
    assert said([lost()], references=[other]) == said([lost()])


def test_what_a_success_saw_and_found_so_is_voted_for():
    votes = {each.line: each.sources for each in edits([won(MUG, HEAT), won(HEAT, name="2"), lost(MUG)], [MUG, HEAT])}
    assert {line: len(sources) for line, sources in votes.items()} == {
        f'UPVOTE("{MUG.id}")': 1,
        f'UPVOTE("{HEAT.id}")': 2,
    }


def test_what_a_failure_followed_in_vain_is_voted_against():
    (vote,) = edits([lost(MUG, turns=LOST)], [MUG])
    assert vote.line == f'DOWNVOTE("{MUG.id}")'
    assert vote.sources == (lost(turns=LOST).id,)


def test_an_entry_that_names_another_place_than_a_success_is_put_right():
    wrong = rule("lotus mug in safe")
    episodes = [won(wrong, turns=DRAWER)]
    corrected, *others = edits(episodes, [wrong])
    assert corrected.line == f'EDIT("{wrong.id}", "lotus mug in drawer")'
    assert corrected.sources == (episodes[0].id,)
    # What was put right is not added or voted on as well.
    assert [each.line for each in others] == ['ADD("lotus heat with microwave")']


def test_where_the_right_wording_is_there_already_the_wrong_one_loses_score():
    oven = rule("lotus heat with oven")
    assert said([won()], [oven, HEAT, MUG]) == [f'DOWNVOTE("{oven.id}")']


def test_of_two_wrong_entries_one_is_put_right():
    oven, fire = sorted((rule("lotus heat with oven"), rule("lotus heat with fire")), key=lambda each: each.id)
    assert said([won()], [fire, oven, MUG]) == [
        f'EDIT("{oven.id}", "lotus heat with microwave")',
        f'DOWNVOTE("{fire.id}")',
    ]


def test_two_entries_that_say_the_same_are_merged_in_the_words_of_the_better():
    one, other = rule("lotus the mug is in the safe"), MUG
    stats = {one.id: Stats(one.id, utility=2.0)}
    (merged,) = edits([won()], [one, other, HEAT], stats=stats)
    operation = parse(merged.line)
    assert (operation.targets, operation.text) == ((one.id, other.id), one.strategy)


def test_pools_are_those_of_the_key_and_only_those_that_were_played():
    maple = replace(rule("maple cup in safe"), scope="maple")
    episodes = [won(), won(name="2", scope="maple", instruction="house maple . task heat mug to counter")]
    assert [(each.scope, each.line) for each in edits(episodes, [maple])] == [
        ("lotus", 'ADD("lotus mug in safe")'),
        ("lotus", 'ADD("lotus heat with microwave")'),
        ("maple", 'ADD("maple mug in safe")'),
        ("maple", 'ADD("maple heat with microwave")'),
    ]
    assert {each.scope for each in edits(episodes, key=key_by("kind"))} == {"k"}
    assert {each.scope for each in edits(episodes, key=key_by("task"))} == {each.task.id for each in episodes}


@pytest.mark.parametrize("scope", ["", "alder", "maple"])
def test_the_wording_of_another_pool_is_still_a_lesson(scope):
    assert said([won()], [replace(each, scope=scope) for each in (MUG, HEAT)]) == said([won()])


def test_no_more_operations_than_asked_for_corrections_first():
    wrong = rule("lotus mug in safe")
    assert said([won(wrong, turns=DRAWER)], [wrong], operations=1) == [f'EDIT("{wrong.id}", "lotus mug in drawer")']


def test_the_same_evidence_gives_the_same_operations_and_counts():
    given = Evidence([won(), lost()], Library([MUG]), evidence([]).references, 2)
    first, second = (writer(QuoteEditorConfig(type="quote-editor"), BY_SCOPE).write(given) for _ in range(2))
    assert first == second
    assert first.entries == ()
    assert first.counts == {"pools": 1.0, "operations": float(len(first.edits))}


def test_nothing_played_is_nothing_said():
    assert edits([], [MUG]) == ()
