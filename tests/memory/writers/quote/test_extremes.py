"""The writer of SLEA-RL on hand-written episodes: who is looked at, what is quoted, and what it is worth."""

from dataclasses import replace

from attempts import SAFE, STOVE, attempt
from support.evidence import evidence

from coevo.configs.bank.writer import QuoteExtremesConfig
from coevo.memory.writers.quote.extremes import discoveries, mistakes, writer
from coevo.records.task import BY_SCOPE, key_by


def earned(name, reward, turns=SAFE, *, success=None, truncated=False, thing="mug"):
    """An episode about a thing with all of its reward on the last turn; a success where it earned something."""
    success = reward > 0 if success is None else success
    told = [tuple(text.replace("mug", thing) for text in turn) for turn in turns]
    made = attempt(name, told, success=success, instruction=f"house lotus . task heat {thing} to counter")
    *early, last = made.turns
    paid = (*early, replace(last, reward=reward))
    return replace(made, turns=paid, truncated=truncated)


def write(episodes, known=(), key=BY_SCOPE, **config):
    return writer(QuoteExtremesConfig(type="quote-extremes", **config), key).write(
        evidence(episodes, known, revision=2)
    )


def texts(proposal, zone):
    return [entry.strategy for entry in proposal.entries if entry.zone == zone]


def test_successes_give_strategies_and_fatal_turns_warnings():
    proposal = write([earned("0", 0.0, STOVE), earned("1", 1.0, SAFE)])
    assert texts(proposal, "strategy") == ["lotus mug in safe", "lotus heat with microwave"]
    assert texts(proposal, "warning") == ["lotus heat not stove"]
    assert [proposal.worth[entry.id] for entry in proposal.entries] == [1.0, 1.0, 0.0]
    assert proposal.counts == {"upper": 1.0, "lower": 1.0, "strategies": 2.0, "warnings": 1.0, "median_reward": 0.5}
    (warning,) = (entry for entry in proposal.entries if entry.zone == "warning")
    assert (warning.example, warning.created, warning.retired, warning.split) == ("use stove", 2, -1, "train")


def test_only_failures_that_the_environment_ended_name_a_mistake():
    ended, ran_out = earned("0", 0.0, STOVE), earned("1", 0.0, STOVE, truncated=True)
    assert [entry.strategy for entry in mistakes(ended, 1)] == ["lotus heat not stove"]
    assert [entry.strategy for entry in discoveries(ended, 1)] == ["lotus mug in safe"]
    assert mistakes(ran_out, 1) == []
    assert [entry.strategy for entry in discoveries(ran_out, 1)] == ["lotus mug in safe", "lotus heat not stove"]
    assert mistakes(earned("2", 1.0, SAFE), 1) == []
    # They come first among those that earned alike.
    proposal = write([ran_out, *[earned(str(n), 0.0, SAFE[:2], truncated=True) for n in range(5)], ended])
    assert texts(proposal, "warning") == ["lotus heat not stove"]


def test_no_more_episodes_are_looked_at_and_no_more_entries_written():
    won = [earned(thing, 1.0, thing=thing) for thing in ("mug", "plate", "pan")]
    lost = [earned(f"{n}", 0.0, [(o, a.replace("stove", s), f.replace("stove", s)) for o, a, f in STOVE])
            for n, s in enumerate(("stove", "oven", "grill"))]  # fmt: skip
    assert len(texts(write([*lost, *won]), "strategy")) == 4
    assert texts(write([*lost, *won], trajectories=1), "strategy") == ["lotus mug in safe", "lotus heat with microwave"]
    assert texts(write([*lost, *won], trajectories=1), "warning") == ["lotus heat not stove"]
    limited = write([*lost, *won], strategies=3, warnings=2)
    assert (len(texts(limited, "strategy")), len(texts(limited, "warning"))) == (3, 2)
    assert write([*lost, *won], strategies=0, warnings=0).entries == ()


def test_the_best_and_the_worst_are_looked_at():
    low, high = earned("0", 0.6, SAFE[:1], thing="mug"), earned("1", 0.9, SAFE[:1], thing="pan")
    bad, worse = earned("2", 0.2, STOVE, success=False), earned("3", 0.1, STOVE, success=False)
    proposal = write([low, high, bad, worse], trajectories=1)
    assert texts(proposal, "strategy") == ["lotus pan in safe"]
    assert proposal.worth[proposal.entries[-1].id] == 0.1


def test_a_lesson_of_several_episodes_is_one_entry_worth_their_mean():
    episodes = [earned("0", 1.0), earned("1", 0.5), earned("2", 0.0, SAFE[4:])]
    proposal = write([*episodes, earned("3", 0.0, SAFE[4:])])
    first = proposal.entries[0]
    assert (first.strategy, first.sources) == ("lotus mug in safe", (episodes[0].id, episodes[1].id))
    assert proposal.worth[first.id] == 0.75


def test_levels_say_in_how_many_tasks_a_lesson_was_met():
    mug, pan = earned("0", 1.0), earned("1", 1.0, thing="pan")
    proposal = write([mug, pan, earned("2", 0.0, SAFE[4:])])
    assert {entry.strategy: entry.level for entry in proposal.entries} == {
        "lotus mug in safe": "example",
        "lotus heat with microwave": "pattern",
        "lotus pan in safe": "example",
    }


def test_what_the_library_holds_is_not_written_again_in_either_zone():
    episodes = [earned("0", 0.0, STOVE), earned("1", 1.0, SAFE)]
    proposal = write(episodes)
    assert write(episodes, known=proposal.entries).entries == ()
    assert write(episodes, known=proposal.entries[:1], strategies=1).entries[0] == proposal.entries[1]


def test_a_lesson_of_the_best_is_no_warning_of_the_worst():
    """A success was told, on its way, what ended the failure."""
    told = [*STOVE, ("at stove hold mug . seen safe stove", "go microwave", "nothing"), *SAFE[3:]]
    strategies = ["lotus mug in safe", "lotus heat not stove", "lotus heat with microwave"]
    proposal = write([earned("0", 0.0, STOVE), earned("1", 1.0, told)])
    assert (texts(proposal, "strategy"), texts(proposal, "warning")) == (strategies, [])
    known = [entry for entry in proposal.entries if entry.strategy == strategies[0]]
    again = write([earned("0", 0.0, STOVE), earned("1", 1.0, told)], known=known)
    assert (texts(again, "strategy"), texts(again, "warning")) == (strategies[1:], [])


def test_entries_belong_to_the_pool_of_their_task():
    episode = earned("0", 1.0)
    for entry in write([episode, earned("1", 0.0, SAFE[4:])], key=key_by("task")).entries:
        assert entry.scope == episode.task.id


def test_nothing_comes_of_nothing():
    assert write([]).entries == ()
    assert write([earned("0", 0.0, SAFE[4:])]).entries == ()
