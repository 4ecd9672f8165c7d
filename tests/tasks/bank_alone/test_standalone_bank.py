"""The bank alone: each change is one revision, and what comes from outside is checked."""

import json

import pytest

import coevo
from coevo.memory.exchange.exchange import read_entries
from coevo.memory.retrieval.encoder import encoder_of
from coevo.utilities.errors import CoevoError

LESSONS = [
    {"strategy": "the mug is in the safe", "condition": "find the mug"},
    {"strategy": "knock before you enter", "condition": "enter a room", "example": "knock"},
]


def helps(memory, lesson, draws):
    """Reward 1 where the lesson is found, else 0."""
    return [float(lesson.strategy in texts(memory.retrieve(lesson.strategy, lesson.scope))) for _ in draws]


def useless(memory, lesson, draws):
    return [float(draw % 2) for draw in draws]


def texts(hits):
    return [hit.entry.strategy for hit in hits]


@pytest.fixture
def bank(tmp_path):
    return coevo.open_bank(tmp_path / "bank")


def test_a_candidate_is_found_once_it_has_shown_a_gain(bank):
    names = bank.propose(LESSONS, scope="ann")
    assert (bank.retrieve("mug", "ann"), [entry.id for entry in bank.candidates()]) == ([], names)
    judged = bank.learn(helps)
    assert [each.verdict.admitted for each in judged] == [True, True]
    assert texts(bank.retrieve("where is the mug", "ann"))[0] == "the mug is in the safe"
    assert (bank.candidates(), bank.retrieve("mug", "bob"), bank.retrieve("mug")) == ([], [], [])
    assert [(each.number, each.action, each.note) for each in bank.history.log()] == [
        (0, "create", ""),
        (1, "propose", "2 new candidates"),
        (2, "learn", "2 of 2 candidates entered"),
    ]


def test_a_useless_candidate_is_refused_and_its_measurements_are_pooled(bank):
    played = []

    def replay(memory, lesson, draws):
        played.extend(draws)
        return useless(memory, lesson, draws)

    for _ in range(2):
        bank.propose(LESSONS[:1])
        (judged,) = bank.learn(replay, replays=16)
        assert not judged.verdict.admitted
    assert (bank.entries(), len(played), len(set(played))) == ([], 64, 32)  # two sides each; no draw repeats
    assert [each.verdict.pairs for each in bank.history.at(4)._now().view.judged()] == [16, 16]


def test_evidence_of_refused_candidates_counts_later(bank):
    bank.propose(LESSONS[:1])
    (short,) = bank.learn(helps, replays=2)
    assert not short.verdict.admitted
    bounds = [short.verdict.bound]
    while not bank.entries():
        bank.propose(LESSONS[:1])
        (again,) = bank.learn(helps, replays=2)
        bounds.append(again.verdict.bound)
    assert bounds == sorted(bounds)
    assert 2 < len(bounds) < 12


def test_lessons_that_wait_are_held_or_were_retired_are_not_proposed_again(bank):
    first, second = bank.add(LESSONS)
    assert bank.propose(LESSONS) == bank.add(LESSONS) == []
    bank.retire(first, "it was moved")
    assert bank.propose(LESSONS) == bank.add(LESSONS) == []
    assert [entry.id for entry in bank.entries()] == [second]
    assert bank.history.log()[-1].note == f"{first}: it was moved (retired by user)"
    assert bank.propose(["a third", "a third."]) and bank.propose(["a third"]) == []
    assert bank.add(["a third"]) and bank.candidates() == []


def test_old_revisions_can_be_read_compared_and_restored(bank):
    bank.add(LESSONS[:1])
    bank.add(LESSONS[1:])
    bank.propose(["look up first"])
    old = bank.history.at(1)
    bank.retire(bank.entries()[0].id, "wrong")
    changes = bank.history.diff(1, 4)
    assert [entry.strategy for entry in changes.added + changes.retired] == []
    bank.history.rollback(3)
    assert len(bank.entries()) == 2 and [entry.strategy for entry in bank.candidates()] == ["look up first"]
    assert [entry.strategy for entry in bank.history.diff(4, 5).added] == ["knock before you enter"]
    assert texts(old.retrieve("mug")) == ["the mug is in the safe"] and old.revision.number == 1
    assert len(bank.history.log()) == 6 and not hasattr(old, "add")


def test_outcomes_and_measurements_make_the_report(bank):
    shown, other, twin = bank.add([LESSONS[0], LESSONS[1], "knock twice before you enter"], scope="ann")
    bank.add(["knock before you enter"], scope="bob")
    bank.outcomes([([shown, shown], True), ([shown, other], False)])
    counters = bank.stats()
    assert (counters[shown].retrievals, counters[shown].successes, counters[other].successes) == (2, 1, 0)
    report = bank.health()
    assert (report.entries, report.tested, len(report.never_retrieved)) == (4, 0.0, 2)
    assert [set(pair[:2]) for pair in report.near_duplicates] == [{other, twin}]
    (judged,) = bank.measure(helps, [shown])
    assert judged.verdict.difference == 1 and judged.verdict.bound == 1
    assert bank.health().tested == 0.25
    assert len(bank.entries()) == 4


def test_opposite_effects_under_one_condition_contradict_each_other(bank):
    pair = ["heat the mug with the stove", "heat the mug without the stove"]
    spellings = ("heat the mug", "heat  the mug.")  # of one condition
    names = bank.add([{"strategy": text, "condition": when} for text, when in zip(pair, spellings, strict=True)])
    other = bank.add([{"strategy": "heat the mug on the stove", "condition": "another day"}])

    def replay(memory, lesson, draws):
        held = lesson.strategy in texts(memory.retrieve(lesson.strategy))
        return [float(held == ("with the" in lesson.strategy)) for _ in draws]

    bank.measure(replay, [*names, *other], replays=8)
    ((first, second, alike),) = bank.health().contradictions
    assert {first, second} == set(names) and 0.8 <= alike < 1


def test_what_was_exported_can_be_imported(bank, tmp_path):
    bank.add(LESSONS, scope={"user": "ann", "task": "a=b&c"})
    assert bank.export(tmp_path / "out.jsonl") == 2
    rows = read_entries(tmp_path / "out.jsonl").rows.values()
    assert {entry.scope for entry in rows} == {"user=ann&task=a%3Db%26c"}
    with pytest.raises(CoevoError, match="already there"):
        bank.export(tmp_path / "out.jsonl")


def test_k_is_that_of_the_query_else_that_of_the_bank(tmp_path):
    bank = coevo.open_bank(tmp_path, retrieval="bm25", k=2)
    bank.add([f"door {n} is open" for n in range(5)])
    assert [len(bank.retrieve("door", k=k)) for k in (None, 0, 1, 4, 9)] == [2, 0, 1, 4, 5]


@pytest.mark.parametrize(
    ("lessons", "scope", "said"),
    [
        ("text", "", "is no list"),
        ([3], "", "lesson 0: 3 is no lesson"),
        ([{"text": "a"}], "", "field 'text' is unknown"),
        (["fine", " "], "", "lesson 1: strategy = ' ': is empty"),
        (["two\nlines"], "", "control character U\\+000A"),
        (["\ud800"], "", "control character"),
        ([{"strategy": 3}], "", "strategy = 3: is no text"),
        ([{"strategy": "a", "condition": None}], "", "condition = None: is no text"),
        (["a" * 2001], "", "has 2001 characters"),
        (["a"], 3, "scope = 3: is no scope"),
        (["a"], {"house": "a"}, "'house' is unknown: the names are user, agent, task"),
        (["a"], {"user": ""}, "user = '': is no name"),
        (["a"], {"user": "\ud800"}, "is no name"),
        (["a"], "s" * 2001, "shorten it to 2000"),
        ([f"lesson {n}" for n in range(1001)], "", "more than 1000 candidates"),
    ],
)
def test_a_lesson_that_is_not_acceptable_changes_nothing(bank, lessons, scope, said):
    with pytest.raises(CoevoError, match=said) as error:
        bank.propose(lessons, scope)
    assert "\n" not in str(error.value) and len(bank.history.log()) == 1


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([1.0] * 7, "returned 7 rewards for 8 draws"),
        ([float("nan")] * 8, "returned nan for draw 2000: return a number from 0 to 1"),
        ([1.0, 2.0] * 4, "returned 2.0 for draw 2001"),
        ([-0.1] * 8, "returned -0.1"),
        (["1"] * 8, "returned '1'"),
        ([None] * 8, "returned None"),
        (None, "returned None: return a list"),
    ],
)
def test_rewards_that_are_not_acceptable_change_nothing(bank, returned, said):
    bank.propose(LESSONS[:1])
    with pytest.raises(CoevoError, match=said):
        bank.learn(lambda memory, lesson, draws: returned)
    assert len(bank.history.log()) == 2 and len(bank.candidates()) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda bank: bank.learn(helps, replays=0), "replays = 0"),
        (lambda bank: bank.learn(helps, confidence=1), "confidence = 1"),
        (lambda bank: bank.learn(helps, rewards=(1, 0)), "are no bounds"),
        (lambda bank: bank.learn(helps, rewards=(0, float("inf"))), "are no bounds"),
        (lambda bank: bank.measure(helps, ["nothing"]), "'nothing' is no active entry"),
        (lambda bank: bank.outcomes([(["nothing"], True)]), "'nothing' is no active entry"),
        (lambda bank: bank.outcomes([3]), "3 is no outcome: write"),
        (lambda bank: bank.outcomes([([], float("nan"))]), "is no outcome"),
        (lambda bank: bank.outcomes([("text", True)]), "is no outcome"),
        (lambda bank: bank.retire("nothing", "why"), "'nothing' is no active entry"),
        (lambda bank: bank.retrieve(3), "query = 3"),
        (lambda bank: bank.retrieve("a", k=-1), "k = -1"),
        (lambda bank: bank.history.at(1), "revision 1 does not exist: the last one is 0"),
        (lambda bank: bank.history.at("1"), "write a whole number"),
        (lambda bank: bank.history.rollback(7), "revision 7 does not exist"),
    ],
)
def test_an_argument_that_is_not_acceptable_is_one_line(bank, call, said):
    with pytest.raises(CoevoError, match=said) as error:
        call(bank)
    assert "\n" not in str(error.value) and len(bank.history.log()) == 1


def test_rewards_have_other_bounds_where_they_are_given(bank):
    bank.propose(LESSONS[:1])
    (judged,) = bank.learn(lambda memory, lesson, draws: [10 * reward for reward in helps(memory, lesson, draws)],
                           rewards=(0, 10))  # fmt: skip
    assert judged.verdict.admitted and judged.verdict.difference == 10


def test_an_error_of_the_replay_reaches_the_caller_and_changes_nothing(bank):
    def replay(memory, lesson, draws):
        raise ZeroDivisionError

    bank.propose(LESSONS[:1])
    with pytest.raises(ZeroDivisionError):
        bank.learn(replay)
    bank.learn(helps)
    assert len(bank.entries()) == 1


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / ".hidden").write_text("no matter")
    coevo.open_bank(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CoevoError, match=r"is no bank, it holds 'notes\.txt'"):
        coevo.open_bank(tmp_path)
    with pytest.raises(CoevoError, match="name a directory that can be written to"):
        coevo.open_bank(tmp_path / "notes.txt")
    with pytest.raises(CoevoError, match=r"No retrieval 'tfdif'\. Did you mean 'tfidf'\?"):
        coevo.open_bank(tmp_path / "new", retrieval="tfdif")


def test_a_damaged_bank_is_one_line(tmp_path):
    bank = coevo.open_bank(tmp_path)
    for n in range(3):
        bank.add([f"lesson {n}"])
    file = tmp_path / "revisions" / "00000002.json"
    whole = file.read_text()
    for damaged in ("", "{}", whole.replace('"number": 2', '"number": 1'), whole.replace('"stats":', '"other":')):
        file.write_text(damaged)
        with pytest.raises(CoevoError, match="copy it back from a backup"):
            bank.history.at(2)
    file.unlink()
    with pytest.raises(CoevoError, match=r"00000002\.json is missing: copy it back from a backup"):
        coevo.open_bank(tmp_path)
    changed = json.loads(whole)
    changed["tables"]["entries"] = "0" * 64
    file.write_text(json.dumps(changed))
    with pytest.raises(CoevoError, match="revision 2 cannot be read: copy the directory back from a backup"):
        bank.history.at(2)
    assert len(coevo.open_bank(tmp_path).entries()) == 3


def test_a_retrieval_whose_model_is_missing_creates_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("coevo.memory.retrieval.encoder.find_spec", lambda name: None)
    encoder_of.cache_clear()
    with pytest.raises(CoevoError, match="install the extra"):
        coevo.open_bank(tmp_path / "bank", retrieval="embedding")
    assert not (tmp_path / "bank").exists()
