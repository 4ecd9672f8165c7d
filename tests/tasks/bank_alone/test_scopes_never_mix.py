"""Whatever their names: an entry of one scope is never found in another."""

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.configs.bank.retrieval_config import Bm25Config, TfidfConfig
from coevo.memory.retrieval.index import Index
from coevo.tasks.bank_alone.bank_reader import Retriever
from coevo.tasks.bank_alone.new_lesson import NAMES, read_lessons, scope_text
from coevo.tasks.bank_alone.scoped_index import MAX_SCOPES, ScopedIndex

VALUES = st.one_of(
    st.text("ab=&%+ /u", min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=4),
)
SCOPES = st.dictionaries(st.sampled_from(NAMES), VALUES)


@given(st.lists(SCOPES, min_size=1, max_size=6), SCOPES)
@settings(deadline=None)
def test_retrieval_returns_entries_of_the_scope_and_those_without(scopes, asked):
    lessons = [read_lessons(["the mug is in the safe"], scope, 1)[0] for scope in scopes]
    memory = Retriever(ScopedIndex(Index({entry.id: entry for entry in lessons}.values(), TfidfConfig(k=100))))
    found = {hit.entry.scope for hit in memory.retrieve("where is the mug", asked)}
    assert found == {scope_text(scope) for scope in scopes if scope in (asked, {})}


@given(SCOPES, SCOPES)
def test_different_names_are_different_scopes_in_any_order(one, other):
    assert (scope_text(one) == scope_text(other)) == (one == other)
    assert scope_text(dict(reversed(one.items()))) == scope_text(one)


WORDS = st.lists(st.sampled_from(["mug", "key", "safe", "box", "lamp"]), min_size=1, max_size=3).map(" ".join)


@pytest.mark.parametrize("config", [TfidfConfig(k=9), Bm25Config(type="bm25", k=9)])
@given(own=st.lists(WORDS), every=st.lists(WORDS, max_size=2), others=st.lists(WORDS, min_size=1), query=WORDS)
@settings(deadline=None)
def test_scores_do_not_depend_on_entries_of_other_scopes(config, own, every, others, query):
    """Neither in a bank that was opened with them, nor in one to which they were added, or from which they went."""
    mine = [*read_lessons(own, "ann", 1), *read_lessons(every, "", 1)]
    theirs = read_lessons([f"{text} {number}" for number, text in enumerate(others)], "bob", 1)
    alone = ScopedIndex(Index(mine, config))
    beside = ScopedIndex(Index([*mine, *theirs], config))
    answers = [
        index.search(query, "ann")
        for index in (alone, beside, alone.over([*mine, *theirs]), beside.over(mine), beside.over([*mine, *theirs[1:]]))
    ]
    assert all(answer == answers[0] for answer in answers)


def test_names_that_somebody_made_up_take_no_memory():
    lessons = [read_lessons([f"the mug of {scope}"], scope, 1)[0] for scope in ("", "ann", "bob")]
    index = ScopedIndex(Index(lessons, TfidfConfig()))
    before = indices()
    for number in range(3 * MAX_SCOPES):
        assert len(index.search("mug", f"user {number}")) == 1
    assert len(index.search("mug", "ann")) == 2
    assert indices() - before == 2


def indices():
    return sum(isinstance(each, Index) for each in gc.get_objects())
