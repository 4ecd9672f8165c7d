"""The contrast writer on hand-written episodes: pairs, success clusters, failure clusters, limits."""

from pathlib import Path

from attempts import SAFE, STOVE, attempt
from support.evidence import evidence

import coevo.memory
from coevo.configs.bank.writer import QuoteContrastConfig
from coevo.memory.evidence.contrasts import pivot
from coevo.memory.writers.quote.contrast import writer
from coevo.records.task import BY_SCOPE

DRAWER = [
    ("at hall hold nothing . seen nothing", "go drawer", "nothing"),
    ("at drawer hold nothing . seen drawer", "go safe", "mug in safe"),
    ("at safe hold nothing . seen drawer safe", "take mug", "hold mug"),
]
"""A failure that parts from the success at once, and ends by the turn limit."""


def write(episodes, known=(), **config):
    seen = evidence(episodes, known, revision=2)
    return list(writer(QuoteContrastConfig(**config), BY_SCOPE).write(seen).entries)


def texts(entries):
    return [entry.strategy for entry in entries]


def test_a_pivot_needs_the_same_observation_before_it():
    won = attempt("0", SAFE, success=True)
    other = attempt("1", [("at cellar hold nothing . seen nothing", *SAFE[0][1:]), *STOVE[1:]], success=False)
    assert pivot(won, other) == 0
    assert pivot(won, attempt("2", SAFE[:3], success=False)) == 3


def test_pairs_come_before_successes_before_failures_and_tasks_take_turns():
    def of(task, name, turns, success):
        renamed = [tuple(text.replace("mug", task) for text in turn) for turn in turns]
        return attempt(name, renamed, success=success, instruction=f"house lotus . task heat {task} to counter")

    plate, cup, mug, pan = (
        [of("plate", "0", STOVE, False)],
        [of("cup", "0", SAFE, True)],
        [of("mug", "0", SAFE, True), of("mug", "1", DRAWER, False), of("mug", "2", STOVE, False)],
        [of("pan", "0", DRAWER, False), of("pan", "1", SAFE, True)],
    )
    assert texts(write([*plate, *cup, *mug, *pan])) == [
        "lotus mug in safe",
        "lotus heat with microwave",
        "lotus pan in safe",
        "lotus cup in safe",
        "lotus heat not stove",
        "lotus plate in safe",
    ]


def test_one_lesson_of_several_episodes_is_one_candidate_with_all_sources():
    episodes = [attempt(str(i), STOVE, success=False) for i in range(3)]
    candidates = write(episodes)
    assert len(candidates) == 2
    assert candidates[0].sources == tuple(episode.id for episode in episodes)


def test_known_lessons_are_left_out_before_the_limit_counts():
    episodes = [attempt("0", SAFE, success=True)]
    first, second = write(episodes)
    assert write(episodes, known=[first], candidates=1) == [second]
    assert write(episodes, candidates=1) == [first]
    assert write(episodes, known=[first, second]) == []
    proposal = writer(QuoteContrastConfig(), BY_SCOPE).write(evidence(episodes, [first], revision=2))
    assert proposal.counts == {"contrast_lessons": 2.0, "contrast_known": 1.0}


def test_no_more_episodes_than_the_buffer_holds_are_looked_at():
    pair = [attempt("0", SAFE, success=True), attempt("1", STOVE, success=False)]
    alone = attempt("2", SAFE, success=True, instruction="house lotus . task find mug")
    assert texts(write([alone, *pair], buffer=3)) == ["lotus heat with microwave", "lotus mug in safe"]
    assert texts(write([alone, *pair], buffer=2)) == ["lotus heat with microwave"]
    assert write(pair, buffer=1) == []


def test_entries_carry_revision_and_split_of_their_episodes():
    (entry,) = write([attempt("0", SAFE[:2], success=False, split="training-b")])
    assert (entry.created, entry.edited, entry.retired, entry.split) == (2, 2, -1, "training-b")


def test_episodes_without_lessons_give_no_candidates():
    assert write([]) == []
    assert write([attempt("0", [], success=False), attempt("1", SAFE[4:], success=True)]) == []


def test_the_bank_names_no_environment():
    sources = [path.read_text().lower() for path in Path(coevo.memory.__file__).parent.rglob("*.py")]
    names = ("homerules", "alfworld", "webshop", "babyai", "sokoban", "appworld", "tau2", "lotus")
    assert sources
    assert not [name for name in names if any(name in source for source in sources)]
