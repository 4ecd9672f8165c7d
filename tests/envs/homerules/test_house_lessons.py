"""True notes that an episode reveals."""

from dataclasses import replace

from coevo.envs.homerules import HomeRules
from coevo.envs.homerules.house_tasks import facts_of
from coevo.records.draws import key
from coevo.tasks.writing.writer_training import episode

ENV = HomeRules()


def test_an_episode_reveals_true_notes_of_its_house_at_their_steps():
    seen = set()
    for number, task in enumerate(ENV.probe(40, key("reveals")).tasks):
        played, known = episode(ENV, task, 0, key("reveals", number)), facts_of(task)
        true = {*map(known.lesson, known.subjects)}.union(*map(known.warnings, known.appliance))
        found = ENV.revealed(played)
        assert {each.note for each in found} <= true
        assert all(each.note == f"{known.house} {played.turns[each.step].feedback}" for each in found)
        seen |= {word for each in found for word in ("in", "with", "not") if f" {word} " in each.note}
    assert seen == {"in", "with", "not"}


def test_the_same_fact_is_revealed_once_and_what_only_acknowledges_is_none():
    task = ENV.probe(1, key("reveals")).tasks[0]
    played = episode(ENV, task, 0, key("reveals"))
    twice = replace(played, turns=played.turns * 2)
    assert [each.note for each in ENV.revealed(twice)] == [each.note for each in ENV.revealed(played)]
    assert not [each for each in ENV.revealed(played) if " hold " in each.note or "nothing" in each.note]
