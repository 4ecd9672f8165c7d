"""Tasks of search QA: their splits, their panels, and the notes that are true of a realm."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from coevo.configs.env import SearchQAConfig
from coevo.envs.base import Revealed
from coevo.envs.searchqa.encyclopedia import (
    NAME,
    REALMS,
    SOURCES,
    Inquiry,
    RealmFacts,
    aliases,
    encyclopedia,
    facts,
    worded,
)
from coevo.envs.searchqa.search_corpus import AskedQuestion, FileQuestions
from coevo.envs.searchqa.search_episode import AnswerKey, Search, SearchState, begin, normal
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.entry import Entry, entry_id
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

MADE_PANELS = {
    "held-out": "new questions in the training realms",
    "no-bank": "the same questions, without the bank",
    "other-facts": "the same realms with other facts, the trusted sources given as notes",
}
FILE_PANELS = {"held-out": "questions of the files that training leaves out"}
_ONE_IN = 4
"""Share of questions that training leaves out."""
SourceVerdict = Literal["right", "wrong"]
NOTE = re.compile(r"(right|wrong) answer in (\w+) by (\w+)")
"""SourceVerdict, realm and source of a note."""


def outcome(verdict: SourceVerdict, realm: str, source: str) -> str:
    """Feedback to an answer that is the one of a source."""
    return f"{verdict} answer in {realm} by {source}"


def note(verdict: SourceVerdict, realm: str, source: str) -> str:
    """Note that a source is right, or wrong, in a realm: its name and the feedback, as a writer quotes them."""
    return f"{realm} {outcome(verdict, realm, source)}"


def sample(config: SearchQAConfig, files: FileQuestions | None, count: int, draw: Key) -> list[Task]:
    """``count`` training tasks, different ones as long as there are enough."""
    every = _file_tasks(config, files, "train") if files else _made_tasks(config, _train(config), "train")
    order = generator(draw).permutation(len(every))
    return [every[order[index % len(order)]] for index in range(count)]


def panel(config: SearchQAConfig, files: FileQuestions | None, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel. Raises ``CoevoError`` for an unknown name, and if it has fewer."""
    panels = FILE_PANELS if files else MADE_PANELS
    if name not in panels:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(panels)}")
    world = f"other/{config.world}" if name == "other-facts" else _train(config)
    every = _file_tasks(config, files, name) if files else _made_tasks(config, world, name)
    if size > len(every):
        raise CoevoError(f"panel {name!r} has {len(every)} tasks with these settings, not {size}: request fewer")
    return tuple(every[:size])


def panel_bank(config: SearchQAConfig, name: str) -> list[Entry] | None:
    """Bank of a panel: None for the run's own, an empty list for ``no-bank``, all notes for ``other-facts``."""
    if name == "no-bank":
        return []
    if name != "other-facts":
        return None
    world = f"other/{config.world}"
    return [
        _entry(realm, note("right", realm, facts(config.level, world, realm).trusted))
        for realm in REALMS[: config.realms]
    ]


def fresh(config: SearchQAConfig, draw: Key) -> Task:
    """A task in a world of its own, which has its realm alone."""
    world, rng = f"fresh/{seed_of(draw):016x}", generator(draw)
    known = facts(config.level, world, REALMS[rng.integers(len(REALMS))])
    every = list(known.inquiries())
    return _task(config, world, 0, every[rng.integers(len(every))], "fresh")


def facts_of(task: Task) -> RealmFacts:
    """Facts of the realm of a task in a made encyclopedia."""
    return facts(task.data["level"], task.data["world"], task.scope)


def revealed(episode: Episode) -> list[Revealed]:
    """Notes that the feedback of an answer reveals."""
    told = [(step, NOTE.search(turn.feedback)) for step, turn in enumerate(episode.turns)]
    when = f"a question is about {episode.task.scope}"
    return [Revealed(f"{episode.task.scope} {found[0]}", when, step) for step, found in told if found]


def state_of(task: Task, files: FileQuestions | None) -> SearchState:
    """First state of a task.

    Raises:
        CoevoError: the task is of another environment, or of other files.
    """
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    data = task.data
    if "golden" not in data:
        return begin(_key_of(task), int(data["searches"]))
    if files is None or data["source"] != files.name:
        raise CoevoError(f"task {task.id} belongs to {data['source']!r}: set env.data and env.path as they were")
    golden = tuple(data["golden"])
    return begin(AnswerKey(golden, wrong=f"wrong , the answer is {golden[0]}"), int(data["searches"]))


def search_of(data: Mapping[str, object], files: FileQuestions | None) -> Search:
    """The search that a task's episode uses."""
    hits = int(str(data["hits"]))
    if files is not None:
        return lambda query: files.search(query, hits)
    known = encyclopedia(int(str(data["level"])), str(data["world"]), _realms(data))
    return lambda query: known.search(query, hits)


def _realms(data: Mapping[str, object]) -> tuple[str, ...]:
    count = int(str(data["realms"]))
    return REALMS[:count] if count else (str(data["realm"]),)


def _key_of(task: Task) -> AnswerKey:
    """Right answers of a made question; the answer of each source reveals whether the realm trusts it."""
    known, data = facts_of(task), task.data
    inquiry = Inquiry(task.scope, data["subject"], tuple(data["relations"]))
    answers = {source: aliases(known.value(inquiry, source)) for source in SOURCES}
    golden, realm = answers[known.trusted], task.scope
    said = [(source, normal(name)) for source in SOURCES for name in answers[source]]
    right = set(map(normal, golden))
    outcomes = {form: outcome("right", realm, known.trusted) for form in right}
    for form in {form for _, form in said} - right:
        by = {source for source, each in said if each == form}
        if len(by) == 1:
            outcomes[form] = outcome("wrong", realm, by.pop())
    return AnswerKey(golden, tuple(sorted(outcomes.items())))


def _train(config: SearchQAConfig) -> str:
    return f"train/{config.world}"


def _made_tasks(config: SearchQAConfig, world: str, split: str) -> list[Task]:
    """Tasks of a split: those of the panels in a fixed random order, realms in turn."""
    return [_task(config, world, config.realms, inquiry, split) for inquiry in _inquiries(config, world, split)]


@lru_cache(maxsize=16)
def _inquiries(config: SearchQAConfig, world: str, split: str) -> tuple[Inquiry, ...]:
    held_out = split != "train"
    pools = [
        [each for each in facts(config.level, world, realm).inquiries() if _is_held_out(config, each) == held_out]
        for realm in REALMS[: config.realms]
    ]
    for pool in pools:
        pool.sort(key=lambda inquiry: seed_of(key(NAME, "order", *inquiry[:2], *inquiry.relations)))
    most = max(map(len, pools))
    return tuple(pool[turn] for turn in range(most) for pool in pools if turn < len(pool))


def _is_held_out(config: SearchQAConfig, inquiry: Inquiry) -> bool:
    parts = (inquiry.realm, inquiry.subject, *inquiry.relations)
    return seed_of(key(NAME, "split", config.level, *parts)) % _ONE_IN == 0


def _task(config: SearchQAConfig, world: str, realms: int, inquiry: Inquiry, split: str) -> Task:
    data = {
        "level": config.level, "world": world, "realms": realms, "realm": inquiry.realm, "subject": inquiry.subject,
        "relations": list(inquiry.relations), "searches": config.searches, "hits": config.hits,
    }  # fmt: skip
    kind = "one hop" if len(inquiry.relations) == 1 else "two hops"
    return Task(NAME, kind, worded(config.level, inquiry), inquiry.realm, split, data)


def _file_tasks(config: SearchQAConfig, files: FileQuestions, split: str) -> list[Task]:
    asked = _file_questions(files.questions, split != "train")
    if not asked:
        raise CoevoError(f"env.path: the files have no question for {split}: add some, or leave out their split")
    limits = {"searches": config.searches, "hits": config.hits}
    return [
        Task(NAME, "question", each.text, "", split, {"source": files.name, "golden": list(each.golden)} | limits)
        for each in asked
    ]


@lru_cache(maxsize=4)
def _file_questions(questions: Sequence[AskedQuestion], held_out: bool) -> tuple[AskedQuestion, ...]:
    """Questions of a split, each once."""
    chosen = {each.text: each for each in questions if _is_left_out(each) == held_out}
    return tuple(sorted(chosen.values(), key=lambda each: seed_of(key(NAME, "queue", each.text))))


def check_division(files: FileQuestions) -> None:
    """Check that no question of the files both trains and evaluates, however it is spelled. Raises ``CoevoError``."""
    found = dict[str, bool]()
    for each in files.questions:
        left_out = _is_left_out(each)
        if found.setdefault(_spelled(each), left_out) != left_out:
            raise CoevoError(f"env.path: question {each.text[:80]!r} is in train and in another split: keep it in one")


def _is_left_out(question: AskedQuestion) -> bool:
    """True for a question that training leaves out: as the file says, else by a hash of the question."""
    if question.split:
        return question.split != "train"
    return seed_of(key(NAME, "file", _spelled(question))) % _ONE_IN == 0


def _spelled(question: AskedQuestion) -> str:
    return normal(question.text) or question.text


def fresh_tasks(config: SearchQAConfig, count: int, draw: Key) -> list[Task]:
    """Tasks for cloning alone."""
    return [fresh(config, extend(draw, index)) for index in range(count)]


def _entry(realm: str, text: str) -> Entry:
    return Entry(
        id=entry_id(realm, text),
        strategy=text,
        condition=realm,
        example="",
        keywords=f"{realm} answer",
        scope=realm,
        split="train",
        sources=(),
        created=0,
        edited=0,
    )
