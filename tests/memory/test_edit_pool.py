"""Operations on one pool: scores, identities, and what cannot be done."""

import pytest
from support.entries import entry

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.memory.edit_operations import MAX_SOURCES, Pool, RefusedError, Rule, parse
from coevo.records.entry import entry_id

MUG = entry("lotus mug in safe", condition="mug", example="go safe", keywords="lotus mug", scope="lotus")
CUP = entry("lotus cup in chest", keywords="lotus cup", scope="lotus", edited=2)
HEAT = entry("lotus heat with oven", keywords="lotus heat", scope="lotus")
ELSEWHERE = {"feedfeedfeed": "maple"}


def pool(*rules, **config):
    rules = rules or (Rule(MUG, 1.0), Rule(CUP, 2.0), Rule(HEAT, 3.0))
    return Pool("lotus", rules, ELSEWHERE, EditsAdmissionConfig(type="edits", **config), revision=5)


def apply(to, *lines, sources=("4/rollout-3/t/0",)):
    return [to.apply(parse(line), sources) for line in lines]


def refused(to, line, sources=("4/rollout-3/t/0",)):
    before = dict(to.rules)
    with pytest.raises(RefusedError) as caught:
        apply(to, line, sources=sources)
    assert to.rules == before
    return str(caught.value)


def scores(of):
    return {rule.entry.strategy: rule.score for rule in of.rules.values()}


def test_add_enters_with_the_initial_score_and_its_sources():
    changed = pool(initial=0.75)
    ((name,),) = apply(changed, 'ADD("lotus heat not stove")')
    (added,) = changed.entries()
    assert name == added.id == entry_id("lotus", "lotus heat not stove")
    assert (added.strategy, added.keywords, added.scope) == ("lotus heat not stove", "lotus heat not stove", "lotus")
    assert (added.created, added.edited, added.split, added.sources) == (5, 5, "train", ("4/rollout-3/t/0",))
    assert changed.scores() == {name: 0.75}


def test_votes_move_scores_by_their_steps():
    changed = pool(up=0.25, down=0.5)
    apply(changed, f'UPVOTE("{MUG.id}")', f'DOWNVOTE("{CUP.id}")')
    assert scores(changed) == {MUG.strategy: 1.25, CUP.strategy: 1.5, HEAT.strategy: 3.0}
    assert changed.entries() == []
    assert changed.scores() == {MUG.id: 1.25, CUP.id: 1.5}


def test_another_spelling_is_not_new_and_an_edit_may_correct_the_spelling_of_its_entry():
    changed = pool()
    assert refused(changed, f'ADD("{MUG.strategy}.")') == f"says what entry {MUG.id} says already"
    assert refused(changed, f'EDIT("{CUP.id}", "{MUG.strategy}。")') == f"says what entry {MUG.id} says already"
    assert apply(changed, f'EDIT("{MUG.id}", "{MUG.strategy}.")') == [(MUG.id,)]
    assert changed.rules[MUG.id].entry.strategy == f"{MUG.strategy}."


def test_edit_keeps_id_score_and_birth_and_forgets_how_the_old_wording_was_used():
    changed = pool()
    assert apply(changed, f'EDIT("{MUG.id}", "lotus mug in drawer")') == [(MUG.id,)]
    (edited,) = changed.entries()
    assert (edited.id, edited.created, edited.edited) == (MUG.id, MUG.created, 5)
    assert (edited.strategy, edited.condition, edited.example) == ("lotus mug in drawer", "", "")
    assert edited.sources == (*MUG.sources, "4/rollout-3/t/0")
    assert changed.scores() == {}


def test_merge_goes_on_as_the_best_of_the_merged_with_their_highest_score():
    changed = pool()
    line = f'MERGE(["{MUG.id}", "{CUP.id}"], "lotus mug and cup in safe")'
    assert apply(changed, line) == [(CUP.id, MUG.id)]
    rows = {row.id: row for row in changed.entries()}
    assert (rows[CUP.id].strategy, rows[CUP.id].retired) == ("lotus mug and cup in safe", -1)
    assert (rows[MUG.id].strategy, rows[MUG.id].retired) == (MUG.strategy, 5)
    assert scores(changed) == {"lotus mug and cup in safe": 2.0, HEAT.strategy: 3.0}


def test_merge_may_keep_one_of_the_wordings_and_then_what_is_known_of_its_use():
    changed = pool(Rule(MUG, 2.0), Rule(CUP, 1.0))
    apply(changed, f'MERGE(["{CUP.id}", "{MUG.id}"], "{MUG.strategy}")')
    kept = changed.rules[MUG.id].entry
    assert (kept.strategy, kept.example, kept.edited) == (MUG.strategy, MUG.example, 5)


def test_equal_scores_merge_into_the_older_entry():
    young = entry("lotus mug in the safe", keywords="mug", scope="lotus")
    young = type(young)(**{name: getattr(young, name) for name in young.__slots__} | {"created": 3, "edited": 3})
    changed = pool(Rule(young, 1.0), Rule(MUG, 1.0))
    assert apply(changed, f'MERGE(["{young.id}", "{MUG.id}"], "lotus mug in safe")') == [(MUG.id, young.id)]


IMPOSSIBLE = {
    'UPVOTE("cafecafecafe")': "names 'cafecafecafe', which is no entry of the pool",
    f'UPVOTE("{"x" * 4000}")': "which is no entry of the pool",
    'DOWNVOTE("feedfeedfeed")': "of another pool, 'maple'",
    f'MERGE(["{MUG.id}", "cafecafecafe"], "lotus mug")': "which is no entry of the pool",
    f'MERGE(["{MUG.id}", "feedfeedfeed"], "lotus mug")': "of another pool",
    f'ADD("{MUG.strategy}")': f"says what entry {MUG.id} says already",
    f'ADD(" {MUG.strategy} ")': "says already",
    f'EDIT("{MUG.id}", "{MUG.strategy}")': "says already",
    f'EDIT("{MUG.id}", "{CUP.strategy}")': "says already",
    f'MERGE(["{MUG.id}", "{CUP.id}"], "{HEAT.strategy}")': "says already",
}


@pytest.mark.parametrize("line", IMPOSSIBLE, ids=lambda line: line[:30])
def test_what_is_impossible_is_refused_and_changes_nothing(line):
    message = refused(pool(), line)
    assert IMPOSSIBLE[line] in message
    assert len(message) < 200


def test_an_operation_counts_once_a_firing():
    changed = pool()
    apply(changed, f'UPVOTE("{MUG.id}")')
    assert "done before" in refused(changed, f' UPVOTE( "{MUG.id}" )')
    assert scores(changed)[MUG.strategy] == 2.0


def test_what_was_merged_away_is_no_longer_there():
    changed = pool()
    apply(changed, f'MERGE(["{MUG.id}", "{CUP.id}"], "lotus mug and cup in safe")')
    assert "was merged before" in refused(changed, f'UPVOTE("{MUG.id}")')
    assert apply(changed, f'UPVOTE("{CUP.id}")') == [(CUP.id,)]


def test_wording_without_an_episode_behind_it_is_refused():
    assert "no episode" in refused(pool(), 'ADD("lotus heat not stove")', sources=())
    assert "no episode" in refused(pool(), f'EDIT("{MUG.id}", "lotus mug in drawer")', sources=())


def test_a_wording_that_an_entry_was_edited_away_from_gets_an_id_of_its_own():
    changed = pool()
    apply(changed, f'EDIT("{MUG.id}", "lotus mug in drawer")')
    ((name,),) = apply(changed, f'ADD("{MUG.strategy}")')
    assert name != MUG.id
    assert sorted(rule.entry.strategy for rule in changed.rules.values()).count(MUG.strategy) == 1


def test_low_scores_leave_and_what_is_on_the_threshold_stays():
    changed = pool(Rule(MUG, 1.0), Rule(CUP, 1.5))
    apply(changed, f'DOWNVOTE("{MUG.id}")', f'DOWNVOTE("{CUP.id}")')
    assert list(changed.prune()) == [(MUG.id, "score 0 is below 0.5")]
    (gone,) = changed.entries()
    assert (gone.id, gone.retired, gone.edited) == (MUG.id, 5, MUG.edited)
    assert scores(changed) == {CUP.strategy: 0.5}


def test_beyond_the_capacity_the_lowest_leave_the_earlier_edit_first():
    changed = pool(Rule(MUG, 2.0), Rule(CUP, 2.0), Rule(HEAT, 3.0), capacity=2)
    assert list(changed.prune()) == [(MUG.id, "score 2 is the lowest beyond 2 entries")]
    assert list(changed.prune()) == []


def test_sources_stay_bounded():
    changed = pool()
    apply(changed, f'EDIT("{MUG.id}", "lotus mug in drawer")', sources=[f"4/rollout-3/t/{n}" for n in range(500)])
    assert len(changed.rules[MUG.id].entry.sources) == MAX_SOURCES
