"""Whatever their names: an entry of one scope is never found in another."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.memory.retrieval.index import Index
from coevo.tasks.bank_alone.bank_reader import Retriever
from coevo.tasks.bank_alone.new_lesson import NAMES, read_lessons, scope_text

VALUES = st.one_of(
    st.text("ab=&%+ /u", min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=4),
)
SCOPES = st.dictionaries(st.sampled_from(NAMES), VALUES)


@given(st.lists(SCOPES, min_size=1, max_size=6), SCOPES)
@settings(deadline=None)
def test_retrieval_returns_entries_of_the_scope_and_those_without(scopes, asked):
    lessons = [read_lessons(["the mug is in the safe"], scope, 1)[0] for scope in scopes]
    memory = Retriever(Index({entry.id: entry for entry in lessons}.values(), TfidfConfig(k=100)))
    found = {hit.entry.scope for hit in memory.retrieve("where is the mug", asked)}
    assert found == {scope_text(scope) for scope in scopes if scope in (asked, {})}


@given(SCOPES, SCOPES)
def test_different_names_are_different_scopes_in_any_order(one, other):
    assert (scope_text(one) == scope_text(other)) == (one == other)
    assert scope_text(dict(reversed(one.items()))) == scope_text(one)
