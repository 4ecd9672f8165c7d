"""Long observations: head and tail stay, the cut is marked, and prompts have at most the tokens that are set."""

import re
from types import SimpleNamespace
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.chat import chat

from coevo.configs.context_config import ContextConfig
from coevo.models.policy.context import JOINER, Context, Shortener
from coevo.records.demonstration import Moment, PastTurn
from coevo.records.metric_names import CUT
from coevo.tasks.iteration.batch import _cut_observations

COSTS = {
    "characters": len,
    "words": lambda text: len(re.findall(r"\w+|[^\w\s]", text)),
    "bytes": lambda text: len(text.encode()),
}
MARK = re.compile(r"\n\[\.\.\. (\d+) tokens are left out \.\.\.\]\n")
JOINED = (
    "e\u0301", "a\u0323\u0302", "\U0001f469\u200d\U0001f4bb", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "क्\u200dष",
    "\u1112\u1161\u11ab", "1\ufe0f\u20e3", "ก\u0e33",
)  # fmt: skip
"""Characters of several code points."""
TEXTS = st.lists(
    st.sampled_from(["a", "word ", "\n", "é", "\U0001f600", "<|im_end|>", ". ", "x" * 40, *JOINED]), max_size=400
).map("".join)


@pytest.mark.parametrize("unit", COSTS)
@settings(max_examples=70, deadline=None, derandomize=True, database=None)
@given(text=TEXTS, limit=st.integers(64, 300))
def test_head_and_tail_are_kept_and_the_cut_is_counted(unit, text, limit):
    cost = COSTS[unit]
    short = Shortener(limit, cost).text(text)
    if cost(text) <= limit:
        assert short == text
        return
    head, count, tail = MARK.split(short)
    assert cost(short) <= limit
    assert text.startswith(head) and text.endswith(tail) and len(head) + len(tail) < len(text)
    assert int(count) == cost(text) - cost(head) - cost(tail)
    assert JOINER not in (head[-1:], tail[:1]) and not any(category(one) == "Mn" for one in tail[:1])
    assert abs(cost(head) - cost(tail)) <= max(map(cost, ["x" * 40, "\U0001f600"])) + 1


def test_without_the_setting_nothing_is_shortened():
    assert Shortener(None, len).text("x" * 10_000) == "x" * 10_000
    with pytest.raises(ValidationError, match="greater than or equal to 64"):
        ContextConfig(observation_tokens=63)


@pytest.mark.parametrize("style", ["chat", "conversation"])
def test_prompts_show_long_observations_and_feedback_shortened(style):
    long = "begin " + "middle " * 5_000 + "end"
    past = tuple(PastTurn(long, "look", long) for _ in range(2))
    moment = Moment("find it", (), past, long)
    config = ContextConfig(style=style, memory_length=None, history="states", observation_tokens=200)
    context = Context(config, chat())
    text = chat().decode(context.prompt(moment))
    assert len(context.prompt(moment)) < 6 * 200 + 400
    assert text.count("begin middle") == text.count("middle end") == len(MARK.findall(text)) == 5
    assert context.is_cut(long) and not context.is_cut("a hall")
    bare = Context(config.model_copy(update={"observation_tokens": None}), chat())
    assert bare.prompt(Moment("find it", (), (), "a hall")) == context.prompt(Moment("find it", (), (), "a hall"))


def test_the_share_of_turns_with_a_cut_is_a_metric():
    context = SimpleNamespace(is_cut=lambda text: len(text) > 3)
    session = SimpleNamespace(
        config=SimpleNamespace(context=ContextConfig(observation_tokens=64)),
        parts=SimpleNamespace(worker=SimpleNamespace(context=context)),
    )
    turns = [
        SimpleNamespace(observation=seen, feedback=told) for seen, told in [("hall", ""), ("a", "b"), ("", "long")]
    ]
    episodes = [SimpleNamespace(turns=turns, lost=""), SimpleNamespace(turns=[turns[1]], lost="")]
    assert _cut_observations(session, episodes) == {CUT: 0.5}
    session.config.context = ContextConfig()
    assert _cut_observations(session, episodes) == {}
