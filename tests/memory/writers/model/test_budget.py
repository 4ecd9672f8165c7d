"""One budget of tokens for a question as a whole: attempts and notes share it, and what is left out is counted."""

from dataclasses import replace

import pytest
from attempts import attempt
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answering import Asked, answer
from support.entries import entry
from support.evidence import evidence

from coevo.configs.bank.writer import (
    ModelContrastConfig,
    ModelEditorConfig,
    ModelExtremesConfig,
    ModelReflectionConfig,
    ModelSkillsConfig,
)
from coevo.memory.writers.model.prompts import prompted
from coevo.memory.writers.writer import AskFunction, writer_of
from coevo.records.task import BY_SCOPE
from coevo.records.writing import QuestionRoom, estimated

PAGE = "page with results . " * 200
"""An observation of 4,000 characters."""
CONFIGS = {
    "contrast": ModelContrastConfig(type="model-contrast"),
    "extremes": ModelExtremesConfig(type="model-extremes", trajectories=8),
    "reflection": ModelReflectionConfig(type="model-reflection"),
    "skills": ModelSkillsConfig(type="model-skills", failures=8, below=1),
    "editor": ModelEditorConfig(type="model-editor"),
}


def group(won, lost, observation="at hall", steps=3):
    turns = [(f"{observation} {n}", f"go {n}", "nothing") for n in range(steps)]
    first = attempt("0", turns, success=False)
    return [
        replace(first, id=f"1/rollout/{first.task.id}/{n}", replica=n, success=n < won, turns=first.turns)
        for n in range(won + lost)
    ]


def written(name, episodes, held=(), references=(), room=None, **changes):
    """The proposal of a writer, and its questions."""
    ask = Asked(answer(name="operations" if name == "editor" else "lessons", subtasks=[], success=True))
    asking = ask if room is None else AskFunction(ask, lambda: room)
    made = writer_of(CONFIGS[name].model_copy(update=changes), BY_SCOPE)
    return made.write(evidence(episodes, held, None, references, 7, BY_SCOPE, ask=asking)), ask.questions


def ids(episodes):
    return {each.id for each in episodes}


def test_an_editor_sees_the_whole_group_and_every_earlier_success():
    played, earlier = group(3, 5), [replace(each, id=f"0/{each.id}") for each in group(6, 0)]
    proposal, (asked,) = written("editor", played, references=earlier)
    assert set(asked.episodes) == ids(played) | ids(earlier)
    assert proposal.counts["left_out_attempts"] == 0


@pytest.mark.parametrize("won", [0, 8])
def test_a_cluster_is_all_attempts_of_a_task_that_ended_alike(won):
    _, (asked,) = written("contrast", group(won, 8 - won))
    assert set(asked.episodes) == ids(group(won, 8 - won))
    assert "These attempts at one task all" in asked.user


def test_pairs_come_before_clusters_and_a_buffer_bounds_the_episodes_of_a_firing():
    other = [replace(each, id=f"{each.id}x", task=replace(each.task, instruction="another")) for each in group(0, 8)]
    _, asked = written("contrast", [*other, *group(1, 2)], buffer=6)
    assert [len(each.episodes) for each in asked] == [2, 2, 3]
    assert not set(asked[2].episodes) & ids(group(1, 2))


def test_a_contrast_shows_the_present_bank_the_own_pool_first():
    held = [entry("first of alder", scope="alder"), entry("own", scope="lotus"), entry("last", scope="maple")]
    _, (asked,) = written("contrast", group(1, 1), held)
    own, *others = [asked.user.index(each.strategy) for each in (held[1], held[0], held[2])]
    assert own < min(others)
    _, (without,) = written("contrast", group(1, 1), held, notes=False)
    assert not [each for each in held if each.strategy in without.user]


@pytest.mark.parametrize("name", CONFIGS)
def test_long_observations_are_shown_to_their_end_by_default(name):
    proposal, asked = written(name, group(1, 1, PAGE))
    assert all(PAGE.strip() in each.user for each in asked)
    assert proposal.counts["shortened_texts"] == 0


DENSE = {
    "#@$.#\n# .*##\n" * 400: 13 * 400 - 4 * 400,
    "3.14159,2.71828;" * 300: 16 * 300,
    '{"a":[1,2]},' * 400: 11 * 400,
    "በኩሽና" * 400: 4 * 400,
    "🏠🔑" * 400: 2 * 400,
    "คุณอยู่" * 400: 7 * 400,
}
"""Texts of which a token has few characters, and the most tokens that a vocabulary of one a character makes of them."""


def test_an_estimate_of_dense_text_is_no_smaller_than_a_token_a_character():
    short = {text[:20]: (QuestionRoom(10**6).size(text), least) for text, least in DENSE.items()}
    assert [name for name, (said, least) in short.items() if said < least] == []
    assert QuestionRoom(10**6).size("look at the mug " * 100) < 16 * 100 / 2.5


def words_of(text):
    return len(text.split())


@pytest.mark.parametrize("name", CONFIGS)
@given(
    won=st.integers(0, 8),
    lost=st.integers(1, 8),
    text=st.sampled_from([PAGE, *DENSE]),
    length=st.sampled_from([5, 300, 4000]),
    steps=st.sampled_from([1, 2, 16]),
    notes=st.integers(0, 60),
    room=st.sampled_from(
        [QuestionRoom(1500), QuestionRoom(900, words_of), QuestionRoom(4000), QuestionRoom(3000, len)]
    ),
)
@settings(max_examples=45)
def test_no_question_is_longer_than_the_room_of_its_writer_model_and_all_it_lacks_is_counted(
    name, won, lost, text, length, steps, notes, room
):
    played = group(won, lost, text[:length].strip() or "x", steps)
    held = [entry(f"note {n} " * 20, scope="lotus") for n in range(notes)]
    proposal, questions = written(name, played, held, played[:3], room)
    assert questions
    assert all(room.of(asked) >= 0 for asked in questions)
    left = sum(len(played[0].turns) * len(asked.episodes) - asked.user.count(". observed ") for asked in questions)
    assert proposal.counts["left_out_steps"] == left
    assert proposal.counts["shortened_texts"] == sum(asked.user.count(' ..."') for asked in questions)
    for kind in ("attempts", "notes"):
        said = sum("more " + kind + " are left out" in asked.user for asked in questions)
        if name != "skills" or kind == "attempts":  # skills name what is known in a sentence
            assert (proposal.counts[f"left_out_{kind}"] > 0) == (said > 0)


def test_where_everything_cannot_be_shown_notes_take_a_third_and_attempts_the_rest():
    held = [entry(f"note {n} " * 30) for n in range(40)]
    found = prompted("edits", "Say so.", group(1, 7, PAGE), QuestionRoom(3000), held)
    shown = 40 - found.notes_left_out
    assert 0 < sum(estimated(each.strategy) for each in held[:shown]) <= 1000
    assert f"({found.notes_left_out} more notes are left out)" in found.question.user
    assert 2000 < 3000 - QuestionRoom(3000).of(found.question) <= 3000


def test_attempts_before_the_last_are_left_out_where_their_shares_would_say_nothing():
    found = prompted("edits", "Say so.", group(1, 29, PAGE), QuestionRoom(900))
    assert found.attempts_left_out == 30 - len(found.attempts) > 0
    assert found.attempts[-1].episode == group(1, 29, PAGE)[-1]
    assert f"({found.attempts_left_out} more attempts are left out)" in found.question.user
