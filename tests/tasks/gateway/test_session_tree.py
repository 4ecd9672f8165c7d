"""Whatever a client does with its history, a prompt continues the tokens that were drawn, and none is made anew."""

from dataclasses import replace
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from coevo.records.episode import Completion
from coevo.records.message import Message, MessageCall
from coevo.tasks.gateway.session_tree import AskedPrompt, SessionTree, history_ids, path_to

TEXTS = st.sampled_from(["a", "b", " a", "b\n"])
CALLS = st.sampled_from([(), (MessageCall.of("go", '{"x": 1, "y": 2}', "call_1"),)])
IDS = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def written(messages):
    """Tokens of messages, as a template would write them: equal messages give equal tokens."""
    return tuple(100 + len(each.role) + 7 * len(each.text) for each in messages)


@st.composite
def steps(draw):
    """A step of a client: a change of its history, new messages, and a number of answers."""
    return (
        draw(
            st.sampled_from(["continue", "again", "cut", "edit", "invent", "blanks", "rewrite arguments", "new tools"])
        ),
        draw(st.lists(st.tuples(st.sampled_from(["user", "tool"]), TEXTS), min_size=1, max_size=2)),
        draw(st.integers(1, 3)),
        draw(st.integers(0, 10)),
    )


def changed(history, what, at):
    """A client's history after it did something to it; an answer always stays before the messages to add."""
    answers = [index for index, each in enumerate(history) if each.role == "assistant"]
    if not answers:
        return list(history)
    at = answers[at % len(answers)]
    if what == "cut":
        return list(history[: at + 1])
    if what == "edit":
        return [*history[:at], replace(history[at], text=f"{history[at].text}!"), *history[at + 1 :]]
    if what == "invent":
        return [*history, Message("user", "and"), Message.answer("so")]
    if what == "blanks":
        return [*history[:at], Message.answer(f" {history[at].text}\n", history[at].calls), *history[at + 1 :]]
    if what == "rewrite arguments":
        calls = tuple(MessageCall.of(each.name, '{"y":2,"x":1}') for each in history[at].calls)
        return [*history[:at], replace(history[at], calls=calls), *history[at + 1 :]]
    return list(history)


@settings(max_examples=250)
@given(script=st.lists(steps(), min_size=1, max_size=14), data=st.data())
def test_tokens_kept_are_the_tokens_drawn(script, data):
    tree, history, tools, drawn, known = SessionTree(), [], "[]", [], {}
    for what, new, count, at in script:
        tools = "[1]" if what == "new tools" else tools
        base = changed(history, what, at)
        asked = (
            base[:]
            if what == "again" and base and base[-1].role != "assistant"
            else [*base, *(Message(*each) for each in new)]
        )
        found = tree.match(asked, tools)
        # An independent record of all histories: the longest one that this repeats has these tokens.
        ends = [n for n in range(len(asked), 0, -1) if (tools, tuple(asked[:n])) in known]
        before = known[tools, tuple(asked[: ends[0]])] if ends else ()
        rest = tuple(asked[ends[0] :] if ends else asked)
        assert (history_ids(found.parent), found.rest) == (before, rest)
        said = []
        for _ in range(count):
            ids = tuple(data.draw(IDS))
            answer = Message.answer(data.draw(TEXTS), data.draw(CALLS))
            completion = Completion(ids, (-0.5,) * len(ids), answer.text, True)
            turn = tree.add(AskedPrompt(found, tools, (), written(rest)), completion, answer)
            known.setdefault((tools, (*asked, answer)), (*before, *written(rest), *ids))
            drawn.append((turn, (*before, *written(rest)), ids))
            said.append(answer)
        history = [*asked, said[at % count]]
    for number, (turn, prompt, ids) in enumerate(drawn):
        assert (turn.number, turn.prompt_ids, tuple(turn.token_ids)) == (number, prompt, ids)
        assert history_ids(turn) == (*prompt, *ids)


def said(tree, messages, tools="[]", ids=(1,), text="so", entries=()):
    asked = AskedPrompt(tree.match(messages, tools), tools, entries, (9,))
    return tree.add(asked, Completion(ids, (-1.0,) * len(ids), text, True), Message.answer(text))


def test_a_rewritten_history_opens_a_branch_and_the_first_one_stays():
    tree, asked = SessionTree(), [Message("user", "a")]
    first = said(tree, asked)
    second = said(tree, [*asked, Message.answer("so"), Message("user", "b")])
    other = said(tree, [*asked, Message.answer("so"), Message("user", "c")])
    new = said(tree, [Message("user", "d")])
    again = said(tree, [*asked, Message.answer("so"), Message("user", "b"), Message.answer("so"), Message("user", "e")])
    assert [turn.branch for turn in (first, second, other, new, again)] == [0, 0, 1, 2, 0]
    assert [turn.number for turn in path_to(again)] == [0, 1, 4]


def test_a_branch_knows_the_entries_that_it_shows():
    tree, asked = SessionTree(), [Message("user", "a")]
    said(tree, asked, entries=("e1",))
    later = said(tree, [*asked, Message.answer("so"), Message("user", "b")], entries=("e2",))
    assert later.held == ("e1", "e2")


def test_a_history_that_no_answer_repeats_takes_time_by_its_length():
    calls = tuple(MessageCall.of("go", f'{{"x": {number}}}') for number in range(20))

    def seconds(count):
        history = [Message("user", "a"), *[Message.answer("so", calls)] * count, Message("user", "b")]
        tree, taken = SessionTree(), []
        for _ in range(3):
            start = process_time()
            tree.match(history, "[]")
            taken.append(process_time() - start)
        return min(taken)

    assert seconds(1600) < 9 * seconds(400)


def test_ten_thousand_turns_keep_every_token():
    tree, history, expected = SessionTree(), [], ()
    for number in range(10_000):
        history = [*history[-40:], Message("user", str(number))] if number % 50 else [Message("user", str(number))]
        found = tree.match(history, "[]")
        before = history_ids(found.parent)
        ids = (number % 97, number % 89)
        tree.add(
            AskedPrompt(found, "[]", (), (7,)), Completion(ids, (-0.1, -0.2), "x", True), Message.answer(f"x{number}")
        )
        expected = (*before, 7, *ids)
        assert history_ids(tree.turns[-1]) == expected
        history = [*history, Message.answer(f"x{number}")]
