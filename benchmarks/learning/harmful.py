"""Harmful and useful lessons at every admission: how many of them enter.

Lessons name the place of an object or the appliance of a family in a house of HomeRules, true or false. The reader is
the scripted expert. A lesson's effect is its mean gain over 512 paired replays of a task of its house and subject:
harmful from -0.1 down, useful from +0.1 up. Every try judges a lesson in one firing by the admission's own code: with
confidence on the default's fresh pairs, 64 at the most, else on 16. A batch of Eq. 7 holds the lesson and three useful
ones. ``within-group`` judges five groups of four rewards per half, with draws of their own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from json import dumps
from statistics import fmean

from benchmarks.bench import Bench, BenchResult
from coevo.configs.bank.admission_config import (
    AppendAdmissionConfig,
    EditsAdmissionConfig,
    ReplayAdmissionConfig,
    WithinGroupAdmissionConfig,
)
from coevo.configs.env import HomeRulesConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.memory.admission.admission import Replay, Trial, admission_of
from coevo.memory.library import AdmissionState, Library
from coevo.memory.trials import OnTrial
from coevo.memory.writers.writer import Edit, Proposal
from coevo.records.draws import Key, extend, generator, key
from coevo.records.entry import Entry, entry_id
from coevo.records.task import Task
from coevo.tasks.steps.evaluate import play_expert

LESSONS, PAIRS, REPLAYS, TRIES = 96, 512, 16, 1000
EFFECT = 0.1
BATCH = 4
HALF = 4
"""Episodes of a half of a group."""
CONFIDENT = ReplayAdmissionConfig()
WITHIN = {"within-group": None, "within-group, confidence 0.95": 0.95}


@dataclass(frozen=True)
class MeasuredLesson:
    """A lesson, a task that it is about, and its effect over ``PAIRS`` paired replays."""

    entry: Entry
    task: Task
    effect: float


def run(bench: Bench) -> None:
    """Measure it where it is missing and print the table."""
    report(bench.cell("homerules", measure))


def measure() -> BenchResult:
    """Share of tries in which a lesson enters, by admission and kind of lesson."""
    env = make(HomeRulesConfig())
    lessons = list(drawn(env, LESSONS))
    kinds = {
        "harmful": [lesson for lesson in lessons if lesson.effect <= -EFFECT],
        "useful": [lesson for lesson in lessons if lesson.effect >= EFFECT],
    }
    shares = {
        f"{rule}/{kind}": share(env, rule, kinds[kind], kinds["useful"])
        for rule in RULES
        for kind in ("harmful", "useful")
    }
    return {
        **shares,
        "tries": TRIES,
        **{f"{kind}_lessons": len(found) for kind, found in kinds.items()},
        **{f"{kind}_effect": fmean(lesson.effect for lesson in found) for kind, found in kinds.items()},
    }


def drawn(env: Environment[object], count: int) -> Iterator[MeasuredLesson]:
    """Lessons of training tasks, a true one and a false one in turn."""
    for number, task in enumerate(env.sample(count, key("harmful"))):
        entry = lesson_of(task, true=number % 2 == 0, draw=key("harmful", number))
        ours, theirs = (rewards(env, task, notes, key("effect", number), PAIRS) for notes in ((entry,), ()))
        yield MeasuredLesson(entry, task, fmean(ours) - fmean(theirs))


def lesson_of(task: Task, true: bool, draw: Key) -> Entry:
    """A true or false lesson about the appliance of a task's family, or the place of its object."""
    from coevo.envs.homerules.house_tasks import facts_of  # the benchmark's world, read by no agent

    rng, facts = generator(draw), facts_of(task)
    subject = task.kind if task.kind in facts.appliance and rng.random() < 0.5 else task.data["object"]
    text = (facts if true else facts.contrary(rng)).lesson(subject)
    about = f"{task.scope} {subject}"
    return Entry(entry_id(task.scope, text), text, subject, "", about, task.scope, "train", (task.id,), 1, 1)


def rewards(
    env: Environment[object], task: Task, notes: Sequence[Entry], draw: Key, count: int, first: int = 0
) -> list[float]:
    """Rewards of the expert with these notes, by replica; equal keys pair two sides."""
    texts = tuple(entry.strategy for entry in notes)
    return [float(play_expert(env, task, texts, extend(draw, first + n))[-1][2]) for n in range(count)]


def share(
    env: Environment[object], rule: str, lessons: Sequence[MeasuredLesson], others: Sequence[MeasuredLesson]
) -> float:
    """Share of tries in which a lesson enters, over the lessons in turn."""
    tries = enumerate(islice(cycle(lessons), TRIES))
    return sum(RULES[rule](env, lesson, others, key("try", rule, n)) for n, lesson in tries) / TRIES


def replayed(
    config: ReplayAdmissionConfig,
    batch: int,
    env: Environment[object],
    lesson: MeasuredLesson,
    others: Sequence[MeasuredLesson],
    draw: Key,
) -> bool:
    """Replay of a lesson, alone or in a batch."""
    chosen = generator(extend(draw, "batch")).permutation(len(others))[: batch - 1].tolist()
    batched = [lesson, *(others[index] for index in chosen if others[index].entry.id != lesson.entry.id)]
    decision = admission_of(config).decide(
        Proposal(tuple({each.entry.id: each.entry for each in batched}.values())),
        Library([]),
        _replay(env, batched, draw),
        1,
    )
    return lesson.entry in decision.entries


def _replay(env: Environment[object], lessons: Sequence[MeasuredLesson], draw: Key) -> Replay:
    tasks = {lesson.entry.id: lesson.task for lesson in lessons}

    def replay(trials: Sequence[Trial], replicas: int) -> list[list[float]]:
        return [
            [
                reward
                for entry in trial.sources
                for reward in rewards(
                    env,
                    tasks[entry.id],
                    [each for each in trial.added if each.scope == entry.scope],
                    extend(draw, entry.id),
                    replicas,
                    trial.first,
                )
            ]
            for trial in trials
        ]

    return replay


def within(
    level: float | None, env: Environment[object], lesson: MeasuredLesson, others: Sequence[MeasuredLesson], draw: Key
) -> bool:
    """Admission within the rollout budget, at the end of a trial."""
    del others
    config = WithinGroupAdmissionConfig(type="within-group", confidence=level)
    trial = tried(env, lesson, config.iterations, draw)
    decision = admission_of(config).decide(Proposal(), Library([], admission=AdmissionState(trials=[trial])), _never, 1)
    return bool(decision.entries)


def tried(env: Environment[object], lesson: MeasuredLesson, iterations: int, draw: Key) -> OnTrial:
    """A lesson after so many iterations on trial, one group of eight in each: four play with it, four without."""
    ours, theirs = (
        tuple(rewards(env, lesson.task, notes, extend(draw, side), iterations * HALF))
        for side, notes in (("with", [lesson.entry]), ("without", []))
    )
    return OnTrial(lesson.entry, (lesson.task,), iterations, iterations, ours, theirs)


def appended(env: Environment[object], lesson: MeasuredLesson, others: Sequence[MeasuredLesson], draw: Key) -> bool:
    """Append, to an empty bank."""
    del env, others, draw
    config = AppendAdmissionConfig(type="append")
    return bool(admission_of(config).decide(Proposal((lesson.entry,)), Library([]), _never, 1).entries)


def edited(env: Environment[object], lesson: MeasuredLesson, others: Sequence[MeasuredLesson], draw: Key) -> bool:
    """Edit operations: the lesson is added to an empty pool."""
    del env, others, draw
    edit = Edit(lesson.entry.scope, f"ADD({dumps(lesson.entry.strategy)})", ("episode",))
    config = EditsAdmissionConfig(type="edits")
    return bool(admission_of(config).decide(Proposal(edits=(edit,)), Library([]), _never, 1).entries)


def _never(trials: Sequence[Trial], replicas: int) -> list[list[float]]:
    raise AssertionError("nothing is replayed")


AdmissionRule = Callable[[Environment[object], MeasuredLesson, Sequence[MeasuredLesson], Key], bool]

RULES: Mapping[str, AdmissionRule] = {
    "confidence 0.95": partial(replayed, CONFIDENT, 1),
    "mean": partial(replayed, ReplayAdmissionConfig(replays=REPLAYS, confidence=None), 1),
    "Eq. 7, batch": partial(replayed, ReplayAdmissionConfig(per="batch", replays=REPLAYS, confidence=None), BATCH),
    **{name: partial(within, level) for name, level in WITHIN.items()},
    "append": appended,
    "edits": edited,
}


def report(result: BenchResult) -> None:
    """Print the share of lessons of either kind that enter."""
    counts = ", ".join(f"{result[f'{kind}_lessons']} {kind} lessons" for kind in ("harmful", "useful"))
    print(
        f"\n{counts}; shares of {result['tries']} tries each\n"
        f"{'admission':32}{'harmful enter':>15}{'useful refused':>16}"
    )
    for rule in RULES:
        print(f"{rule:32}{result[f'{rule}/harmful']:15.3f}{1 - result[f'{rule}/useful']:16.3f}")
    print("target: at most 0.010 of the harmful lessons enter with confidence 0.95")
