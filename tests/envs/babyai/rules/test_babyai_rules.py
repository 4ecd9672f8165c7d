"""Panels, notes, expert and cloning material of the towers."""

import pytest
from support.scripted import episodes, solved

from coevo.configs.bank.writer import (
    QuoteContrastConfig,
    QuoteEditorConfig,
    QuoteExtremesConfig,
    QuoteReflectionConfig,
    QuoteSkillsConfig,
)
from coevo.envs.babyai.babyai_contents import ThingName
from coevo.envs.babyai.rules import BabyAIRules
from coevo.envs.babyai.rules.tower_world import TOWERS, custom
from coevo.memory.evidence.contrasts import lessons
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.writer import Evidence, writer_of
from coevo.records.draws import key
from coevo.records.task import key_by

WRITERS = [
    QuoteContrastConfig(),
    QuoteEditorConfig(type="quote-editor"),
    QuoteExtremesConfig(type="quote-extremes"),
    QuoteReflectionConfig(type="quote-reflection"),
    QuoteSkillsConfig(type="quote-skills", below=1.0),
]


@pytest.fixture(scope="module")
def env():
    return BabyAIRules()


@pytest.fixture(scope="module")
def strayed(env):
    """200 training episodes of the expert without notes; one action in ten is random."""
    return episodes(env, env.sample(200, key("strayed")), (), key("play"), 0.1)


def texts(notes):
    return [note.strategy for note in notes]


def things(task):
    return {ThingName(*task.data[side].split()) for side in ("left", "right")}


@pytest.mark.parametrize(
    ("name", "rounds"), [("seen-towers", 1), pytest.param("other-facts", 4, marks=pytest.mark.soak)]
)
def test_the_expert_guesses_without_notes_and_reads_true_ones(env, name, rounds):
    tasks = env.panel(name, 512).tasks
    blind = [one for number in range(rounds) for one in episodes(env, tasks, (), key("blind", number))]
    assert solved(blind) <= 0.55
    notes = env.panel_bank(name)
    told = episodes(env, tasks[: 128 * rounds], texts(env.true_notes() if notes is None else notes), key("told"))
    assert solved(told) >= 0.95


def test_false_notes_mislead_the_expert(env):
    tasks = env.panel("other-facts", 64).tasks
    probe = env.probe(64, key("probe"))
    assert solved(episodes(env, tasks, texts(env.true_notes()), key("false"))) <= 0.65
    told = [solved(episodes(env, [task], notes, key(1))) for task, notes in zip(probe.tasks, probe.right, strict=True)]
    lied = [solved(episodes(env, [task], notes, key(1))) for task, notes in zip(probe.tasks, probe.wrong, strict=True)]
    assert (min(told), max(lied)) == (1.0, 0.0)


def test_the_quoting_rule_finds_nothing(env, strayed):
    assert 0.2 < solved(strayed) < 0.55
    assert sum("it obeys" in episode.turns[-1].feedback for episode in strayed) > 150
    assert [lesson for episode in strayed for lesson in lessons(episode, 1)] == []


@pytest.mark.parametrize("config", WRITERS, ids=lambda config: config.type)
def test_no_rule_writer_proposes_anything(strayed, config):
    by = key_by("scope")
    evidence = Evidence(strayed, Library([], {}, None), References(by, 4, strayed), 1)
    proposal = writer_of(config, by).write(evidence)
    assert (proposal.entries, proposal.edits) == ((), ())


def test_exactly_one_of_two_unlike_things_opens_the_door(env):
    for task in (*env.sample(200, key("pairs")), *env.panel("other-facts", 100).tasks):
        one, other = things(task)
        obeyed = custom(task.data["world"], task.scope)
        assert (obeyed in one) != (obeyed in other)
        assert one.colour != other.colour and one.thing != other.thing


def test_training_and_panels_share_no_pair_in_a_tower(env):
    trained = {(task.scope, *sorted(map(" ".join, things(task)))) for task in env.sample(3000, key("split"))}
    held = {(task.scope, *sorted(map(" ".join, things(task)))) for task in env.panel("seen-towers", 512).tasks}
    assert not trained & held
    assert {scope for scope, *_ in trained} == {scope for scope, *_ in held} == set(TOWERS[:16])


def test_panels_keep_what_they_promise(env):
    seen, bare, other = (env.panel(name, 96).tasks for name in env.panels)
    assert [task.data for task in seen] == [task.data for task in bare]
    assert {task.data["world"] for task in seen} == {"train/0"}
    assert {task.data["world"] for task in other} == {"other-facts/0"}
    assert len({task.id for task in env.panel("seen-towers", 512).tasks}) == 512
    assert (env.panel_bank("seen-towers"), env.panel_bank("no-bank")) == (None, [])
    assert [note.scope for note in env.panel_bank("other-facts")] == list(TOWERS[:16])
    changed = sum(custom("train/0", tower) != custom("other-facts/0", tower) for tower in TOWERS[:16])
    assert changed >= 10


def test_an_instruction_says_nothing_about_places_or_the_custom(env):
    tasks = env.sample(400, key("places"))
    first = [task.data["left"] == task.instruction.split(" with the ")[1].split(" or ")[0] for task in tasks]
    opens = [custom(task.data["world"], task.scope) in task.data["left"].split() for task in tasks]
    # Four standard deviations of a binomial count of 400 draws with chance 1/2: 40.
    assert abs(sum(first) - 200) < 40 and abs(sum(opens) - 200) < 40
    named = [custom(task.data["world"], task.scope) in task.instruction.partition(" or ")[0] for task in tasks]
    assert abs(sum(named) - 200) < 60


def test_other_seeds_are_other_worlds():
    worlds = [texts(BabyAIRules(world).true_notes()) for world in range(5)]
    assert len(set(map(tuple, worlds))) == 5
    assert {note.split()[1] for notes in worlds for note in notes} == set(TOWERS[:16])


def test_every_word_is_in_the_vocabulary(env, strayed):
    said = [text for episode in strayed for turn in episode.turns for text in (turn.observation, turn.feedback)]
    said += [episode.task.instruction for episode in strayed]
    for shown in env.demonstrations(100, 0, key("words")):
        moment = shown.moment
        said += [moment.instruction, moment.observation, shown.answer.thought, shown.answer.action]
        said += [note.text for note in moment.lessons]
        said += [text for turn in moment.history for text in turn]
    assert {word for text in said for word in text.split()} - {"."} <= set(env.vocabulary)


def test_demonstrations_follow_notes_and_never_show_a_world_of_a_run(env):
    shown = env.demonstrations(60, 0, key("shown"))
    first = [one for one in shown if not one.moment.history]
    assert len(first) == 60
    told = [one for one in first if any(one.moment.instruction.split()[1] in note.text for note in one.moment.lessons)]
    assert 35 <= len(told) < 60
    assert all(one.answer.thought.startswith("in ") for one in told)
    assert all(one.answer.thought.startswith("guess") for one in first if one not in told)
