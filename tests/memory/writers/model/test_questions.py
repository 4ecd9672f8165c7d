"""Attempts, notes and skills in the questions of the model writers: which of them are shown, and how many."""

import json
from dataclasses import replace

import pytest
from attempts import SAFE, STOVE, attempt
from support.answering import Asked, answer, lesson
from support.entries import entry
from support.evidence import evidence

from coevo.configs.bank.writer import ModelEditorConfig, ModelExtremesConfig, ModelReflectionConfig, ModelSkillsConfig
from coevo.memory.writers.writer import writer_of
from coevo.records.task import BY_SCOPE, key_by

WON, LOST, AGAIN = (attempt(f"{n}", turns, success=turns is SAFE) for n, turns in enumerate((SAFE, STOVE, STOVE)))
PLATE = attempt("3", SAFE, success=True, instruction="house lotus . task heat plate to counter")
HEAT = "heat the mug with the microwave"


def wrote(config, episodes, *said, held=(), key=BY_SCOPE, references=(), name="lessons", **fields):
    """The proposal, and the questions that were asked for it; each is answered with the same items."""
    made, ask = writer_of(config, key), Asked(answer(*said, name=name, **fields))
    return made.write(evidence(episodes, held, None, references, 7, key, ask=ask)), ask.questions


def ids(*episodes):
    return tuple(each.id for each in episodes)


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_an_editor_reads_the_worst_new_attempts_and_the_latest_successes(count):
    earlier = [replace(WON, id=f"1/rollout/{WON.task.id}/{name}") for name in (7, 8)]
    config = ModelEditorConfig(type="model-editor", trajectories=2, successes=count)
    _, (asked,) = wrote(config, [WON, LOST, AGAIN], references=earlier, name="operations")
    assert asked.episodes == ids(LOST, AGAIN, *earlier[2 - min(count, 2) :])


def test_an_editor_reads_the_notes_of_the_pool_as_they_are_written():
    notes = [entry("größer", scope="lotus"), entry("cup", scope="alder"), entry("fork", scope="maple"), entry("pan")]
    _, (asked,) = wrote(ModelEditorConfig(type="model-editor"), [LOST], held=notes, name="operations")
    assert f'Notes:\n{notes[0].id}: "größer"\n\n' in asked.user
    assert not [note for note in notes[1:] if note.id in asked.user]


@pytest.mark.parametrize(
    "changes", [{"ids": "cafe"}, {"ids": [1]}, {"ids": None}, {"ids": []}, {"text": None}, {"op": None}]
)
def test_an_operation_of_another_form_is_refused(changes):
    held = entry("mug in safe", scope="lotus")
    item = {"op": "UPVOTE", "ids": [held.id], "text": ""}
    config = ModelEditorConfig(type="model-editor", operations=2)
    proposal, _ = wrote(config, [LOST], item | changes, item, item, held=[held], name="operations")
    assert [reject.reason for reject in proposal.rejects] == ["shape"]
    assert (len(proposal.edits), proposal.counts["operations"], proposal.counts["pools"]) == (1, 1.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "episodes", "purposes"),
    [
        ({}, [LOST, WON], ["strategies", "warnings"]),
        ({"strategies": 0}, [LOST, WON], ["warnings"]),
        ({"warnings": 0}, [LOST, WON], ["strategies"]),
        ({}, [WON], ["strategies"]),
        ({}, [LOST], ["warnings"]),
        ({}, [], []),
    ],
)
def test_strategies_and_warnings_are_asked_for_where_there_are_attempts_and_room(settings, episodes, purposes):
    proposal, asked = wrote(ModelExtremesConfig(type="model-extremes", **settings), episodes)
    assert [each.purpose for each in asked] == purposes
    sides = proposal.counts["upper"], proposal.counts["lower"]
    assert sides == (float(WON in episodes), float(LOST in episodes))


def test_a_question_about_several_tasks_names_none_and_has_as_many_attempts_as_configured():
    config = ModelExtremesConfig(type="model-extremes", trajectories=2)
    _, (strategies, warnings) = wrote(config, [WON, PLATE, LOST, replace(WON, id="1/rollout/x/9")])
    assert (strategies.task, strategies.episodes) == ("", ids(WON, PLATE))
    assert (warnings.task, warnings.episodes) == (LOST.task.id, ids(LOST))


def test_a_schema_has_the_order_of_the_prompt_and_allows_nothing_more():
    """A server that constrains answers writes the fields in this order: conclusions come last."""
    _, (asked,) = wrote(ModelReflectionConfig(type="model-reflection"), [WON])
    schema = json.loads(asked.schema)
    assert list(schema["properties"]) == ["subtasks", "success", "lessons"]
    assert list(schema["properties"]["lessons"]["items"]["properties"])[:3] == ["lesson", "when", "when_not"]
    assert schema["additionalProperties"] is schema["properties"]["lessons"]["items"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, [ids(WON, AGAIN), ids(LOST, PLATE)]),
        ({"induction": "single"}, [ids(WON), ids(LOST)]),
        ({"reveal_outcome": False}, [ids(WON), ids(LOST)]),
        ({"outcomes": "failures"}, [ids(LOST, PLATE)]),
    ],
)
def test_a_reflection_is_asked_for_beside_a_reference_and_of_failures_alone_if_configured(settings, shown):
    config = ModelReflectionConfig(type="model-reflection", **settings)
    proposal, asked = wrote(config, [WON, LOST], references=[PLATE, AGAIN], subtasks=[], success=True)
    assert [each.episodes for each in asked] == shown
    assert proposal.counts["pairwise"] == float(len(shown[0]) - 1)


SKILLS = ModelSkillsConfig(type="model-skills", below=0.7, failures=1)


def test_skills_are_asked_for_with_one_success_and_are_general_only_if_said_to_be():
    said = [lesson(HEAT, general=1), lesson("take mug", 2, general=True), lesson("go safe", 1, general="true")]
    proposal, (asked,) = wrote(SKILLS, [WON, PLATE, LOST, AGAIN], *said, key=key_by("kind"), first_wrong_step=1)
    assert asked.episodes == ids(LOST, WON)
    assert "the last attempt, number 2, succeeded" in asked.user
    made = [(each.strategy, each.scope) for each in proposal.entries]
    assert made == [(HEAT, "k"), ("take mug", ""), ("go safe", "k")]
    assert (proposal.counts["failing_kinds"], proposal.counts["general_skills"]) == (1.0, 1.0)
    half = SKILLS.model_copy(update={"below": 0.5})  # no more than what succeeds
    assert wrote(half, [WON, PLATE, LOST, AGAIN], key=key_by("kind"))[0].counts["failing_kinds"] == 0.0


@pytest.mark.parametrize(("scope", "proposed"), [("k", 0), ("", 0), ("a", 1), ("z", 1)])
def test_a_skill_that_the_kind_has_is_not_proposed_again(scope, proposed):
    held = [entry(HEAT, scope=scope), entry("look first", scope="k")]
    proposal, _ = wrote(SKILLS, [LOST], lesson(HEAT), held=held, key=key_by("kind"), first_wrong_step=1)
    assert len(proposal.entries) == proposed


def test_the_latest_forty_known_skills_are_named():
    held = [entry(f"skill {n}", scope=("k", "")[n % 2], edited=n) for n in range(41)]
    held += [entry(f"other {n}", scope=("a", "z")[n]) for n in range(2)]
    _, (asked,) = wrote(SKILLS, [LOST], held=held, key=key_by("kind"), first_wrong_step=1)
    assert (asked.user.count('"skill '), asked.user.count('"other ')) == (40, 0)
    assert '"skill 40", "skill 39"' in asked.user and '"skill 0"' not in asked.user
    _, (asked,) = wrote(SKILLS, [LOST], key=key_by("kind"), first_wrong_step=1)
    assert "These skills are known already: none." in asked.user
