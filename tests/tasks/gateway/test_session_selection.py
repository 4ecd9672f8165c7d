"""Sessions become an iteration by the order of their lines: each is taken once, or left out for a reason."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.policies import qwen

from coevo.models.policy.language_model import ends_of
from coevo.records.message import Message, MessageCall
from coevo.records.task import Task
from coevo.tasks.gateway.session_episodes import EpisodeReader
from coevo.tasks.gateway.session_selection import (
    SCORES,
    SelectionRule,
    TakenSessions,
    read_taken,
    select,
    write_taken,
)
from coevo.tasks.gateway.session_store import (
    REWARD,
    MessageRecord,
    SessionOutcome,
    SessionRecord,
    SessionTask,
    StepReport,
    TurnRecord,
)
from coevo.tasks.pending_revision import Position

POLICY = qwen()
READER = EpisodeReader("house", POLICY.tokenizer, ends_of(POLICY), {"run@3": 3, "run@2": 2})
RULE = SelectionRule(outcomes=4, grouped=True)
AT = Position(4, 3)


def drawn(
    parent=None, policy="run@3", text="go safe", ids=(5, 6), added=(1, 2), entries=(), heard="at hall", calls=(), **more
):
    heard = MessageRecord.of(Message("user", heard))
    answer = MessageRecord.of(Message.answer(text, calls))
    logprobs = tuple(-0.25 * (1 + each) for each in range(len(ids)))
    figures = {"scores": (None,) * len(entries), "drawing": None} | more
    return TurnRecord(
        branch=0, parent=parent, tools="[]", messages=(heard,), entries=entries, added=added, token_ids=ids,
        logprobs=logprobs, finished=True, answer=answer, policy=policy, **figures,
    )  # fmt: skip


def session(name, group="g", reward=1.0, end="outcome", turns=None, task=None, **outcome):
    told = SessionOutcome(reward=reward, success=reward > 0, **outcome) if end == "outcome" else None
    turns = (drawn(),) if turns is None else turns
    return SessionRecord(
        session=name, end=end, outcome=told, mode="training", group=group, task=task or SessionTask(), policy="run@3",
        bank="", turns=turns,
    )  # fmt: skip


def chosen(selection):
    return [each.record.session for each in selection.chosen]


def test_an_iteration_closes_at_the_line_that_completes_it():
    records = {line: session(f"s{line}") for line in range(6)}
    found = select(records, TakenSessions(), READER, RULE)
    assert (chosen(found), found.lines, found.last) == (["s0", "s1", "s2", "s3"], 4, "s3")
    assert found.taken == TakenSessions(4, "s3")


def test_a_session_alone_in_its_group_waits_for_another_until_it_is_stale():
    records = {0: session("a", "x"), **{line: session(f"s{line}") for line in range(1, 5)}}
    first = select(records, TakenSessions(), READER, RULE)
    assert chosen(first) == ["s1", "s2", "s3", "s4"]
    assert first.taken.waiting == (0,)
    later = {0: records[0], 5: session("b", "x"), **{line: session(f"s{line}", "y") for line in range(6, 9)}}
    second = select(later, first.taken, READER, RULE)
    assert chosen(second) == ["a", "b", "s6", "s7"]
    aged = EpisodeReader("house", POLICY.tokenizer, READER.ends, {"run@4": 4})
    stale = select({0: records[0]}, first.taken, aged, RULE)
    assert (stale.left_out, stale.taken.waiting) == ({"stale": 1}, ())


def test_an_estimator_without_groups_takes_sessions_alone():
    records = {line: session(f"s{line}", group="") for line in range(4)}
    assert len(select(records, TakenSessions(), READER, replace(RULE, grouped=False)).chosen) == 4
    assert not select(records, TakenSessions(), READER, RULE).chosen


LEFT_OUT = {
    "lost": session("x", end="lost", turns=()),
    "abandoned": session("x", end="abandoned"),
    "stale": session("x", turns=(drawn(), drawn(0, policy="run@1"))),
    "reward": session("x", reward=1.5),
    "held_out": session("x", "p", task=SessionTask(instruction="panel", data={"n": 1})),
    "task": session("x", task=SessionTask(instruction="other", data={"n": 7})),
}


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_what_nothing_learns_from_is_counted_by_its_reason(reason):
    held = Task("house", "", "panel", "", "train", {"n": 1})
    records = {0: session("a"), 1: LEFT_OUT[reason], 2: session("b")}
    found = select(records, TakenSessions(), READER, replace(RULE, outcomes=2, held_out=frozenset({held.id})))
    assert chosen(found) == ["a", "b"]
    assert found.left_out == {reason: 1}


@given(kind=st.text(max_size=4), instruction=st.text(min_size=1, max_size=4), scope=st.text(max_size=4))
def test_a_held_out_task_teaches_nothing_whatever_a_client_calls_it(kind, instruction, scope):
    held = Task("house", "heat", "panel", "lotus", "p", {"n": 1, "goal": ["mug"]})
    given = [
        SessionTask(kind=kind, instruction=instruction, scope=scope, data={"goal": ["mug"], "n": n}) for n in (1, 2)
    ]
    records = {line: session(f"s{line}", "", task=task) for line, task in enumerate(given)}
    rule = replace(RULE, grouped=False, held_out=frozenset({held.id}), held_out_data=frozenset({held.data_digest}))
    found = select(records, TakenSessions(), READER, rule)
    assert (chosen(found), found.left_out) == (["s1"], {"held_out": 1})


def test_a_task_that_cannot_be_played_again_is_left_out_where_it_has_to_be():
    records = {0: session("a"), 1: session("b")}
    found = select(records, TakenSessions(), READER, replace(RULE, starts=lambda task: False))
    assert found.left_out == {"task": 2}


@example(reward=0.9999999999999999, steps=[2.1, 0.0])
@settings(max_examples=300, deadline=None)
@given(
    reward=st.sampled_from([0.0, 1.0, 0.1, 0.3, 1e-300]) | st.floats(0, 1),
    steps=st.lists(st.integers(-40, 40).map(lambda tenths: tenths / 10) | st.floats(-REWARD, REWARD), max_size=6),
)
def test_step_rewards_leave_the_return_as_reported_or_the_session_is_counted(reward, steps):
    turns = tuple(drawn() for _ in range(max(1, len(steps))))
    told = tuple(StepReport(turn=turn, reward=each) for turn, each in enumerate(steps))
    record = session("x", reward=reward, turns=turns, steps=told)
    found = select({0: record}, TakenSessions(), READER, replace(RULE, outcomes=1, grouped=False))
    if found.left_out:
        assert found.left_out == {"reward": 1}
        assert max(map(abs, steps)) > 40
        return
    episode = READER.episode(record, found.chosen[0].task, 0, AT)
    assert 0 <= episode.reward <= 1
    assert episode.reward == pytest.approx(reward, abs=1e-15 * max(1, *map(abs, (1, *steps))))
    assert [turn.reward for turn in episode.turns[:-1]] == steps[:-1]


@pytest.mark.parametrize("field", ["reward", "steps", "scores"])
def test_numbers_of_an_outcome_have_a_bound(field):
    def told(number):
        fields = {"reward": number, "steps": [{"turn": 0, "reward": number}], "scores": {"score": number}}
        return {"reward": 0.0, "success": False, field: fields[field]}

    assert SessionOutcome.model_validate(told(REWARD))
    for number in (2 * REWARD, -2 * REWARD, 1e308, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"{field}.*\n"):
            SessionOutcome.model_validate(told(number))


def test_the_names_of_scores_in_an_iteration_have_a_bound():
    names = [f"n{number}" for number in range(SCORES + 100)]
    told = [names[:100], names[100:SCORES], names[SCORES:], names[:100]]
    records = {line: session(f"s{line}", scores=dict.fromkeys(each, 0.5)) for line, each in enumerate(told)}
    found = select(records, TakenSessions(), READER, RULE)
    assert chosen(found) == ["s0", "s1", "s3"]
    assert found.left_out == {"scores": 1}


KINDS = st.sampled_from(["g", "h", "i", "lost", "abandoned", "stale", "reward"])


@settings(max_examples=60, deadline=None)
@given(kinds=st.lists(KINDS, max_size=40), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_however_lines_arrive_each_is_used_once_waits_or_is_counted(kinds, cuts):
    lines = {
        number: LEFT_OUT[kind].model_copy(update={"session": f"s{number}"})
        if kind in LEFT_OUT
        else session(f"s{number}", kind)
        for number, kind in enumerate(kinds)
    }
    taken, used, left = TakenSessions(), list[str](), Counter()
    for end in [*sorted(cuts), *[len(kinds)] * 12]:
        seen = {line: lines[line] for line in lines if (line < end and line >= taken.lines) or line in taken.waiting}
        found = select(seen, taken, READER, RULE)
        assert found == select(seen, taken, READER, RULE)
        if len(found.chosen) < RULE.outcomes and end < len(kinds):
            continue
        used += chosen(found)
        left += found.left_out
        taken = found.taken
    assert len(used) == len(set(used))
    assert len(used) + left.total() + len(taken.waiting) == len(kinds)
    assert left == Counter(kind for kind in kinds if kind in LEFT_OUT)


def test_taken_lines_come_back_from_a_revision(tmp_path):
    taken = TakenSessions(7, "s6", (2, 5))
    write_taken(taken, tmp_path)
    assert read_taken(tmp_path / "sessions") == taken
    assert read_taken(None) == TakenSessions()


def test_an_episode_has_the_drawn_tokens_of_every_branch_once():
    turns = (
        drawn(ids=(5, 6, 7), added=(1, 2), entries=("e1",), scores=(0.5,), drawing=0.25),
        drawn(0, ids=(8,), added=(3,), heard="mug in safe", policy="run@2", entries=("e2",), scores=(None,)),
        drawn(0, ids=(9, 10), added=(4,), heard="rewritten", drawing=0.75),  # a branch behind the first answer
        drawn(None, ids=(11,), added=(1, 4), heard="anew"),
        drawn(1, ids=(12,), added=(5,), entries=("e3",)),
    )
    record = session("s", turns=turns, reward=0.5, steps=(StepReport(turn=1, action="go", reward=0.25, valid=False),))
    episode = READER.episode(record, READER.task(record), 2, AT)
    assert [turn.completion.token_ids for turn in episode.turns] == [turn.token_ids for turn in turns]
    assert [turn.completion.logprobs for turn in episode.turns] == [turn.logprobs for turn in turns]
    prompts = [turn.prompt_ids for turn in episode.turns]
    assert prompts == [(1, 2), (1, 2, 5, 6, 7, 3), (1, 2, 5, 6, 7, 4), (1, 4), (1, 2, 5, 6, 7, 3, 8, 5)]
    assert [turn.version for turn in episode.turns] == [3, 2, 3, 3, 3]
    assert [turn.retrieved for turn in episode.turns] == [("e1",), ("e1", "e2"), ("e1",), (), ("e1", "e2", "e3")]
    assert [turn.lesson_scores for turn in episode.turns] == [(0.5,), (0.5, None), (0.5,), (), (0.5, None, None)]
    assert [turn.seconds for turn in episode.turns] == [0.25, None, 0.75, None, None]
    assert [turn.reward for turn in episode.turns] == [0.0, 0.25, 0.0, 0.0, 0.25]
    assert [turn.valid for turn in episode.turns] == [True, False, True, True, True]
    assert episode.turns[0].feedback == "mug in safe"
    assert [turn.action for turn in episode.turns] == ["go safe", "go", "go safe", "go safe", "go safe"]
    assert episode.id == f"4/rollout-3/{episode.task.id}/2"


def test_calls_are_actions_as_environments_with_tools_get_them():
    call = MessageCall.of("go", '{"place": "safe"}', "c1")
    record = session("s", turns=(drawn(text="", calls=(call,)),))
    (turn,) = READER.episode(record, READER.task(record), 0, AT).turns
    assert turn.action == '{"name": "go", "arguments": {"place": "safe"}}'


def test_a_task_with_its_data_is_the_environments_own():
    task = Task("house", "heat", "heat the mug", "lotus", "train", {"n": 1})
    given = SessionTask(kind="heat", instruction="heat the mug", scope="lotus", data={"n": 1})
    assert READER.task(session("s", task=given)).id == task.id
    assert READER.task(session("s", "one")).id == READER.task(session("t", "one")).id
    assert READER.task(session("s", "")).id != READER.task(session("t", "")).id
