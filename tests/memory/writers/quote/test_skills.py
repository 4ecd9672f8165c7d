"""Skills of kinds that fail: thresholds, limits, and which of them are general."""

from dataclasses import replace

from attempts import SAFE, STOVE, attempt
from support.evidence import evidence

from coevo.configs.bank.writer import QuoteSkillsConfig
from coevo.memory.writers.quote.skills import writer
from coevo.records.entry import entry_id
from coevo.records.task import key_by

KIND = key_by("kind")


def of(kind, name, turns, success):
    episode = attempt(name, turns, success=success)
    return replace(episode, task=replace(episode.task, kind=kind))


def write(episodes, known=(), **config):
    return writer(QuoteSkillsConfig(type="quote-skills", **config), KIND).write(evidence(episodes, known, key=KIND))


def told(proposal):
    return [(entry.strategy, entry.scope) for entry in proposal.entries]


def test_a_kind_is_written_for_where_its_success_is_below_the_bound():
    played = [of("heat", "0", STOVE, False), of("heat", "1", STOVE, False), of("heat", "2", SAFE, True)]
    proposal = write(played, below=0.4)
    assert told(proposal) == [("lotus mug in safe", "heat"), ("lotus heat not stove", "heat")]
    assert proposal.entries[0].sources == (played[0].id, played[1].id)
    assert proposal.counts == {"failing_kinds": 1.0, "general_skills": 0.0}
    assert told(write(played, below=1 / 3)) == []


def test_what_most_failures_teach_comes_first_and_no_more_than_the_limit():
    played = [of("heat", "0", STOVE, False), of("heat", "1", SAFE[:3], False)]
    assert told(write(played, skills=1)) == [("lotus mug in safe", "heat")]
    known = write(played, skills=1).entries
    assert told(write(played, known, skills=1)) == [("lotus heat not stove", "heat")]


def test_what_two_kinds_teach_is_general():
    played = [of("heat", "0", STOVE, False), of("put", "0", SAFE[:3], False)]
    proposal = write(played)
    assert told(proposal) == [("lotus mug in safe", ""), ("lotus heat not stove", "heat")]
    assert proposal.entries[0].id == entry_id("", "lotus mug in safe")
    assert proposal.counts == {"failing_kinds": 2.0, "general_skills": 1.0}
    assert told(write(played[1:], write(played[:1]).entries)) == [("lotus mug in safe", "")]
    assert told(write(played[1:], proposal.entries)) == []


def test_what_another_kind_already_has_is_general():
    heat, put = [of("heat", "0", SAFE[:3], False)], [of("put", "0", SAFE[:3], False)]
    for played, others in ((heat, put), (put, heat)):
        held = write(others).entries
        assert [entry.scope for entry in held] == [KIND(others[0].task)]
        assert told(write(played, held)) == [("lotus mug in safe", "")]
        assert told(write(played, write(played).entries)) == []
